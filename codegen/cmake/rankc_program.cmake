# add_rankc_program(<name> PLAN <plan.hpp> NAME <C++ name of a constexpr plan>
#                   [TARGET host|cuda] [DTYPE f32|f64|bf16] [OPS <header.hpp>...])
# add_rankc_program(<name> GENERATOR <another's>_rankc
#                   [TARGET host|cuda] [DTYPE f32|f64|bf16] [OPS <header.hpp>...])
#
#   <name>_rankc    the generator: the plan linked to rankc::codegen; not made if the plan has one already
#   <name>_program  library of the rank programs, for embedding: #include <<name>_program/program.hpp>
#   <name>          executable: the programs with the trainer's command line
#
# OPS: headers of a user's ops and optimizers. Each header has three parts. The part under RANKC_HOST_KERNELS
# has the host's kernels. The part under RANKC_CUDA_KERNELS has the CUDA kernels, declared for C++ and defined
# for nvcc, which compiles the header too. The last part has the rows, for plans. The header that a row names
# is searched for in the directories of these headers.
#
# The file names are known before the plan: each program has one source, which includes the generated files of
# its folder.
include_guard(DIRECTORY)
include("${CMAKE_CURRENT_LIST_DIR}/declared_plans.cmake")
include("${CMAKE_CURRENT_LIST_DIR}/optimization.cmake")

function(add_rankc_program name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "PLAN;NAME;GENERATOR;TARGET;DTYPE" "OPS")
  if(arg_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "add_rankc_program(${name}): unknown arguments ${arg_UNPARSED_ARGUMENTS}; "
                        "it takes PLAN and NAME, or GENERATOR, and TARGET, DTYPE and OPS")
  endif()
  if(NOT arg_GENERATOR AND (NOT arg_PLAN OR NOT arg_NAME))
    message(FATAL_ERROR "add_rankc_program(${name}): PLAN (a header) and NAME (the plan's C++ name) are needed")
  endif()
  set(made ${name} ${name}_program)
  if(NOT arg_GENERATOR)
    list(APPEND made ${name}_rankc)
  endif()
  foreach(target IN LISTS made)
    if(TARGET ${target})
      message(FATAL_ERROR "add_rankc_program(${name}): there is a target ${target} already; take another name")
    endif()
  endforeach()
  if(NOT arg_TARGET)
    set(arg_TARGET host)
    if(TARGET rankc::runtime_cuda AND CMAKE_CUDA_COMPILER_LOADED)
      set(arg_TARGET cuda)
    endif()
  endif()
  if(NOT arg_TARGET MATCHES "^(host|cuda)$")
    message(FATAL_ERROR "add_rankc_program(${name}): TARGET is host or cuda, not ${arg_TARGET}")
  endif()
  if(NOT TARGET rankc::runtime_${arg_TARGET})
    message(FATAL_ERROR "add_rankc_program(${name}): TARGET ${arg_TARGET} needs rankc::runtime_${arg_TARGET}, "
                        "which is built where a CUDA compiler and NCCL are found")
  endif()
  if(arg_TARGET STREQUAL "cuda" AND NOT CMAKE_CUDA_COMPILER_LOADED)
    message(FATAL_ERROR "add_rankc_program(${name}): TARGET cuda needs the CUDA language in this directory; "
                        "name it in project(... LANGUAGES CXX CUDA)")
  endif()
  set(dtype)
  if(arg_DTYPE)
    if(NOT arg_DTYPE MATCHES "^(f32|f64|bf16)$")
      message(FATAL_ERROR "add_rankc_program(${name}): DTYPE is f32, f64 or bf16, not ${arg_DTYPE}")
    endif()
    set(dtype --dtype ${arg_DTYPE})
  endif()

  set(out "${CMAKE_CURRENT_BINARY_DIR}/${name}_program")
  if(NOT arg_GENERATOR)
    set(arg_GENERATOR ${name}_rankc)
    cmake_path(ABSOLUTE_PATH arg_PLAN BASE_DIRECTORY "${CMAKE_CURRENT_SOURCE_DIR}" NORMALIZE)
    cmake_path(GET arg_PLAN PARENT_PATH plan_dir)
    cmake_path(GET arg_PLAN FILENAME plan_file)
    rankc_check_plan(${name} "${arg_PLAN}" "${arg_NAME}")
    file(CONFIGURE OUTPUT "${CMAKE_CURRENT_BINARY_DIR}/${name}_rankc.cpp" CONTENT [[
#include <@plan_file@>
#include <rankc/codegen/generator.hpp>
constexpr auto& named = @arg_NAME@;  // add_rankc_program(@name@): NAME must be a constexpr plan that @plan_file@ declares
static_assert(rankc::is_plan<decltype(named)>, "add_rankc_program(@name@): NAME @arg_NAME@ is not a rankc::plan");
int main(int argc, char** argv) { return rankc::codegen::generator_main(rankc::make_plan("@name@", named), argc, argv); }
]] @ONLY)
    add_executable(${name}_rankc "${CMAKE_CURRENT_BINARY_DIR}/${name}_rankc.cpp")
    target_include_directories(${name}_rankc PRIVATE "${plan_dir}")
    target_link_libraries(${name}_rankc PRIVATE rankc::codegen)
    if(CMAKE_CXX_COMPILER_ID MATCHES "GNU|Clang")
      target_compile_options(${name}_rankc PRIVATE -O0)  # it only declares the plan; the library is optimised
    endif()
  endif()

  set(source "${out}/program.cpp")  # for both targets; the runtime has the kernels
  add_custom_command(OUTPUT "${source}" "${out}/program.hpp" "${out}/main.cpp"
    COMMAND ${arg_GENERATOR} emit --target ${arg_TARGET} ${dtype} --out "${out}"
    DEPENDS ${arg_GENERATOR} COMMENT "Generating ${name} (${arg_TARGET})" VERBATIM)
  add_library(${name}_program STATIC "${source}" "${out}/program.hpp")
  target_include_directories(${name}_program PUBLIC "${CMAKE_CURRENT_BINARY_DIR}")
  target_link_libraries(${name}_program PUBLIC rankc::runtime_${arg_TARGET})
  rankc_optimization(optimization)
  target_compile_options(${name}_program PRIVATE ${optimization})
  foreach(header IN LISTS arg_OPS)
    cmake_path(ABSOLUTE_PATH header BASE_DIRECTORY "${CMAKE_CURRENT_SOURCE_DIR}" NORMALIZE)
    if(NOT EXISTS "${header}")
      message(FATAL_ERROR "add_rankc_program(${name}): OPS ${header} does not exist")
    endif()
    cmake_path(GET header PARENT_PATH folder)
    cmake_path(GET header FILENAME file)
    target_include_directories(${name}_program PRIVATE "${folder}")
    if(TARGET ${name}_rankc)
      target_include_directories(${name}_rankc PRIVATE "${folder}")
    endif()
    if(arg_TARGET STREQUAL "cuda")
      file(CONFIGURE OUTPUT "${out}_${file}.cu" CONTENT "#define RANKC_CUDA_KERNELS\n#include <@file@>\n" @ONLY)
      target_sources(${name}_program PRIVATE "${out}_${file}.cu")
    endif()
  endforeach()
  add_executable(${name} "${out}/main.cpp")
  target_link_libraries(${name} PRIVATE ${name}_program rankc::trainer)
  target_compile_options(${name} PRIVATE ${optimization})
endfunction()
