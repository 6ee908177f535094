# cmake -DFOLDER=<dsl> "-DCOMPILER=<compiler and flags>" -DSOURCE=<added.cpp> -DOUT=<folder> -P add_axis.cmake
#
# Two axes are added to a copy of rankc/mesh/axes.hpp, the only file that must change, each by a member, a
# value and a row: `xp`, which shards features and is not lowered, and `np`, which shards sequences and is
# lowered for tokens. SOURCE must compile with the copy before FOLDER. Then each missing part of an axis must
# give an error sentence.
cmake_minimum_required(VERSION 3.25)
set(field_from " = 1, pp = 1,")
set(field_to " = 1, xp = 1, pp = 1,")
set(tokens_field_from "dp_shard = 1, cp = 1,")
set(tokens_field_to "dp_shard = 1, np = 1, cp = 1,")
set(value_from "  tp,\n  edp_inner,\n")
set(value_to "  tp,\n  xp,\n  edp_inner,\n")
set(tokens_value_from "  dp_shard,\n  cp,\n")
set(tokens_value_to "  dp_shard,\n  np,\n  cp,\n")
set(row_from "    {.id = axis::edp_inner,")
set(row_to "    {.id = axis::xp, .name = \"xp\", .help = \"extra\", .degree = &parallel_dims::xp, .dense = seen::always,
     .shares = part::features, .places = true, .letter = 'z', .carries = {purpose::activations, \"parts of features\"}},
    {.id = axis::edp_inner,")
set(tokens_row_from "    {.id = axis::cp,")
set(tokens_row_to "    {.id = axis::np, .name = \"np\", .help = \"more replicas\", .degree = &parallel_dims::np, .dense = seen::always,
     .shares = part::sequences, .places = true, .lowered = lowered_values::tokens, .letter = 'n'},
    {.id = axis::cp,")
set(join_value_from "  embedding\n};")
set(join_value_to "  embedding,\n  tp_xp\n};")
set(join_row_from "\"tied embeddings\"}},\n};")
set(join_row_to "\"tied embeddings\"}},\n    {.id = axis::tp_xp, .name = \"tp_xp\", .joins = {axis::tp, axis::xp}},\n};")

# Replaces the named parts, each of which occurs once in the table. Sets `said` to the compiler's output for
# SOURCE.
function(compile_with source)
  file(READ "${FOLDER}/rankc/mesh/axes.hpp" table)
  foreach(part IN LISTS ARGN)
    string(FIND "${table}" "${${part}_from}" first)
    string(FIND "${table}" "${${part}_from}" last REVERSE)
    if(first EQUAL -1 OR NOT first EQUAL last)
      message(FATAL_ERROR "axes.hpp does not have once: ${${part}_from}")
    endif()
    string(REPLACE "${${part}_from}" "${${part}_to}" table "${table}")
  endforeach()
  file(WRITE "${OUT}/rankc/mesh/axes.hpp" "${table}")
  list(POP_FRONT COMPILER compiler)
  execute_process(COMMAND ${compiler} "-I${OUT}" ${COMPILER} -fsyntax-only "${source}" ERROR_VARIABLE said RESULT_VARIABLE failed)
  set(said "${said}" PARENT_SCOPE)
  set(failed "${failed}" PARENT_SCOPE)
endfunction()

file(REMOVE_RECURSE "${OUT}")
compile_with("${SOURCE}" field value row join_value join_row tokens_field tokens_value tokens_row)
if(failed)
  message(SEND_ERROR "an axis takes more than axes.hpp:\n${said}")
endif()

file(WRITE "${OUT}/alone.cpp" "#include <rankc/mesh/axes_check.hpp>\n")
function(expect sentence)
  compile_with("${OUT}/alone.cpp" ${ARGN})
  string(REPLACE "\\'" "'" said "${said}")  # g++ escapes them
  string(FIND "${said}" "${sentence}" found)
  if(NOT failed OR found EQUAL -1)
    message(SEND_ERROR "with ${ARGN} alone the compiler does not say: ${sentence}\nbut:\n${said}")
  endif()
endfunction()
expect("an axis of the enum has no row, or rows are in another order" value)
expect("an axis has no row in axis_rows" join_value)
set(second_region_from ".places = true, .letter = 'z'")
set(second_region_to ".places = true, .lowered = lowered_values::all, .letter = 'z'")
expect("axis 'xp' is lowered and shards the features of dense layers, as 'tp' does; tensor-parallel regions span one axis"
       field value row second_region)
expect("parallel_dims has 9 degrees, and 8 have a row" field)
