# Families of plans: for each, a library of plans, a generator that writes their programs, and a library of
# programs per target.
find_package(nlohmann_json REQUIRED)
add_library(rankc_split_plans STATIC families/split_plan.cpp)
target_link_libraries(rankc_split_plans PUBLIC rankc::dsl PRIVATE rankc_warnings)
add_library(rankc_write_programs STATIC families/sample.cpp families/write_programs.cpp)
target_include_directories(rankc_write_programs PUBLIC families)
target_link_libraries(rankc_write_programs PUBLIC rankc::codegen PRIVATE rankc_warnings)

# A library with the plans of related families. Compiling plans spends most of its time in functions of the
# language that all plans call, so one unit has all plans.
function(rankc_plans library)
  add_library(${library} STATIC ${ARGN})
  target_include_directories(${library} PRIVATE "${rankc_SOURCE_DIR}/dsl/plans")
  target_link_libraries(${library} PUBLIC rankc_split_plans PRIVATE rankc_warnings)
  target_compile_options(${library} PRIVATE -O0)  # most of their time are the plans
  set_target_properties(${library} PROPERTIES UNITY_BUILD ON)
  rankc_use_precompiled(rankc_pch_plans ${library})
endfunction()
rankc_plans(rankc_odd_plans odd/plans.cpp odd/techniques.cpp)
set_source_files_properties(odd/techniques.cpp PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)  # it has names of odd/plans.cpp
rankc_plans(rankc_experts_plans experts/plans.cpp columns/plans.cpp independent/plans.cpp balance/plans.cpp routing/plans.cpp)
rankc_plans(rankc_sequences_plans
  sequences/plans.cpp documents/plans.cpp encoders/plans.cpp inputs/plans.cpp masked/plans.cpp attention/plans.cpp
  packed/plans.cpp weighted/plans.cpp)
rankc_plans(rankc_training_plans recompute/plans.cpp lora/plans.cpp fp8/plans.cpp optimizer/plans.cpp hugging_face/family_plans.cpp hugging_face/plans.cpp)

# The generator of a family, whose plans are in `plans`.
function(rankc_family name plans)
  add_executable(rankc_${name}_generate ${name}/generate.cpp)
  target_link_libraries(rankc_${name}_generate PRIVATE ${plans} rankc_write_programs)
  set_target_properties(rankc_${name}_generate PROPERTIES links_libraries_first ON)
endfunction()

# A library of the programs that a generator writes for a target, in `parts` sources, and of their registry. ARGN is `sample`
# if the generator takes a sample of its programs.
function(rankc_registered_programs library generator target parts)
  set(out "${CMAKE_CURRENT_BINARY_DIR}/${library}")
  set(sources "${out}/registry.cpp")
  math(EXPR last "${parts} - 1")
  foreach(part RANGE ${last})
    list(APPEND sources "${out}/part_${part}.cpp")
  endforeach()
  add_custom_command(OUTPUT ${sources} COMMAND ${generator} ${target} "${out}" ${parts} ${ARGN}
    DEPENDS ${generator} COMMENT "Generating the programs of ${library}" VERBATIM)
  add_library(${library} STATIC ${sources})
  target_include_directories(${library} PRIVATE "${rankc_SOURCE_DIR}/tests/programs" "${rankc_SOURCE_DIR}/tests/odd"
    "${rankc_SOURCE_DIR}/tests/inputs" "${out}")
  target_link_libraries(${library} PUBLIC rankc::runtime_${target} rankc::trainer PRIVATE rankc_warnings)
  target_compile_options(${library} PRIVATE -O0 ${rankc_without_collection})  # most of their time are their headers
  if(target STREQUAL "host")
    rankc_use_precompiled(rankc_pch_programs ${library})
  endif()
endfunction()


# The programs of a family for a target.
function(rankc_family_programs name target parts)
  rankc_registered_programs(rankc_${name}_${target} rankc_${name}_generate ${target} ${parts})
endfunction()

# Two libraries of a family's programs for the host: a sample in `parts` sources, and every program in twice as many.
# Cases that families share (families/counts.hpp) need the numbers of jobs and of plans.
function(rankc_sampled_programs name parts)
  rankc_registered_programs(rankc_${name}_host rankc_${name}_generate host ${parts} sample)
  math(EXPR twice "2 * ${parts}")
  rankc_registered_programs(rankc_${name}_every_host rankc_${name}_generate host ${twice})
  set_target_properties(rankc_${name}_every_host PROPERTIES EXCLUDE_FROM_ALL ON)
  if(ARGC GREATER 2)
    target_compile_definitions(rankc_${name}_host INTERFACE RANKC_FAMILIES=${ARGV2} RANKC_PLANS=${ARGV3})
  endif()
endfunction()

# A test of a family's programs on the listed numbers of GPUs. The names of its cases begin with "1 GPU", "2
# GPUs" or "4 GPUs".
function(rankc_family_cuda_test name gpus)
  add_executable(rankc_${name}_cuda_test programs/cuda/main.cpp ${ARGN})
  target_include_directories(rankc_${name}_cuda_test PRIVATE programs)
  target_link_libraries(rankc_${name}_cuda_test PRIVATE rankc_${name}_cuda rankc_test_options)
  foreach(count IN LISTS gpus)
    add_test(NAME ${name}_cuda_gpu${count} COMMAND rankc_${name}_cuda_test)
    set_tests_properties(${name}_cuda_gpu${count} PROPERTIES ENVIRONMENT RANKC_TEST_GPUS=${count} LABELS gpu${count}
      SKIP_RETURN_CODE 77 RUN_SERIAL ON)
  endforeach()
  if("2" IN_LIST gpus AND NOT name STREQUAL odd)
    rankc_on_one_gpu(${name}_cuda_gpu2 2 rankc_${name}_cuda_test)
  endif()
endfunction()

# Cases that families share, compiled once. Each executable has counts.cpp with its family's numbers.
add_library(rankc_family_gradients OBJECT families/gradients_test.cpp)
add_library(rankc_family_split OBJECT families/split_test.cpp)
foreach(cases IN ITEMS rankc_family_gradients rankc_family_split)
  target_include_directories(${cases} PRIVATE programs)
  target_link_libraries(${cases} PRIVATE rankc::trainer rankc::runtime_host rankc_test_options)
endforeach()
add_library(rankc_check_lowered STATIC families/check_lowered.cpp)
target_include_directories(rankc_check_lowered INTERFACE families)
target_link_libraries(rankc_check_lowered PUBLIC rankc::codegen rankc::verify PRIVATE rankc_test_options)

# The gradients of a family's plans. `one`, `two` and `four`: the number of plans on one GPU, on two, and on
# three or four.
function(rankc_gradients_cuda_test name parts one two four)
  rankc_family_programs(${name} cuda ${parts})
  set(gpus 1)
  if(two)
    list(APPEND gpus 2)
  endif()
  if(four)
    list(APPEND gpus 4)
  endif()
  rankc_family_cuda_test(${name} "${gpus}" families/cuda_gradients_test.cpp)
  target_link_libraries(rankc_${name}_cuda_test PRIVATE rankc_${name}_host)
  target_compile_definitions(rankc_${name}_cuda_test PRIVATE RANKC_ON_ONE=${one} RANKC_ON_TWO=${two} RANKC_ON_FOUR=${four})
endfunction()

# Plans that users may write and no other test has: generated, compiled, trained, and compared with finite
# differences.
rankc_family(odd rankc_odd_plans)
rankc_sampled_programs(odd 4 45 305)
add_executable(rankc_odd_test odd/certificate_test.cpp odd/checkpoint_test.cpp odd/coverage_test.cpp odd/embedded_test.cpp
  odd/odd_test.cpp odd/refused_test.cpp families/counts.cpp)
target_include_directories(rankc_odd_test PRIVATE programs)
target_link_libraries(rankc_odd_test PRIVATE rankc_family_gradients rankc_family_split rankc_odd_plans rankc::codegen rankc::verify rankc_odd_host rankc_test_host_main nlohmann_json::nlohmann_json)
add_test(NAME odd COMMAND rankc_odd_test)
rankc_every_program(odd_every_program rankc_odd_test odd)

rankc_every_mutant(odd rankc_odd_test "certificates of odd*")

# Models with experts.
rankc_family(experts rankc_experts_plans)
rankc_sampled_programs(experts 2 9 118)
add_executable(rankc_experts_test experts/capacity_test.cpp experts/checkpoint_test.cpp experts/exchanges_test.cpp experts/lowering_test.cpp fuzz/reference.cpp families/counts.cpp)
target_include_directories(rankc_experts_test PRIVATE programs families)
target_link_libraries(rankc_experts_test PRIVATE rankc_family_gradients rankc_family_split rankc_check_lowered rankc_experts_plans rankc::codegen rankc::verify rankc_experts_host rankc_test_host_main rankc_test_json)
add_test(NAME experts COMMAND rankc_experts_test)
rankc_every_program(experts_every_program rankc_experts_test experts)
rankc_every_mutant(experts rankc_experts_test "programs with experts on ranks*")

# Models with expert parallelism that also shard the columns of experts.
rankc_family(columns rankc_experts_plans)
rankc_sampled_programs(columns 1 5 38)
add_executable(rankc_columns_test columns/checkpoint_test.cpp columns/lowering_test.cpp columns/gathers_test.cpp families/counts.cpp)
target_include_directories(rankc_columns_test PRIVATE programs families)
target_link_libraries(rankc_columns_test PRIVATE rankc_family_split rankc_check_lowered rankc_experts_plans rankc::codegen rankc::verify rankc_columns_host rankc_test_host_main rankc_test_json)
add_test(NAME columns COMMAND rankc_columns_test)
rankc_every_program(columns_every_program rankc_columns_test columns)
rankc_every_mutant(columns rankc_columns_test "programs whose ranks share*,the norm counts*")

# Models whose experts are distributed over ranks with the same tokens.
rankc_family(independent rankc_experts_plans)
rankc_sampled_programs(independent 1 3 26)
add_executable(rankc_independent_test independent/checkpoint_test.cpp independent/lowering_test.cpp independent/routing_test.cpp families/counts.cpp)
target_include_directories(rankc_independent_test PRIVATE programs families)
target_link_libraries(rankc_independent_test PRIVATE rankc_family_split rankc_check_lowered rankc_experts_plans rankc::codegen rankc::verify rankc_independent_host rankc_test_host_main rankc_test_json)
add_test(NAME independent COMMAND rankc_independent_test)
rankc_every_program(independent_every_program rankc_independent_test independent)
rankc_every_mutant(independent rankc_independent_test "programs whose ranks of ep*")

# Models with router losses.
rankc_family(balance rankc_experts_plans)
rankc_sampled_programs(balance 2 5 48)
add_executable(rankc_balance_test families/counts.cpp)
target_include_directories(rankc_balance_test PRIVATE programs)
target_link_libraries(rankc_balance_test PRIVATE rankc_family_gradients rankc_family_split rankc_experts_plans rankc::codegen rankc::verify rankc_balance_host rankc_test_host_main)
add_test(NAME balance COMMAND rankc_balance_test)
rankc_every_program(balance_every_program rankc_balance_test balance)

# Models whose routers choose groups of experts first, or have a bias.
rankc_family(routing rankc_experts_plans)
rankc_sampled_programs(routing 1 5 56)
add_executable(rankc_routing_test routing/bias_test.cpp routing/lowering_test.cpp families/counts.cpp)
target_include_directories(rankc_routing_test PRIVATE programs families)
target_link_libraries(rankc_routing_test PRIVATE rankc_family_gradients rankc_family_split rankc_check_lowered rankc_experts_plans rankc::codegen rankc::verify rankc_routing_host rankc_test_host_main)
add_test(NAME routing COMMAND rankc_routing_test)
rankc_every_program(routing_every_program rankc_routing_test routing)
rankc_every_mutant(routing rankc_routing_test "programs of routers*")

# Plans that recompute, compared with the same plans without recomputation.
rankc_family(recompute rankc_training_plans)
rankc_sampled_programs(recompute 2 33 126)
add_executable(rankc_recompute_test recompute/recompute_test.cpp recompute/lowering_test.cpp families/counts.cpp)
target_include_directories(rankc_recompute_test PRIVATE programs families)
target_link_libraries(rankc_recompute_test PRIVATE rankc_check_lowered rankc_training_plans rankc::codegen rankc::verify rankc_recompute_host rankc_test_host_main)
add_test(NAME recompute COMMAND rankc_recompute_test)
rankc_every_program(recompute_every_program rankc_recompute_test recompute)
rankc_every_mutant(recompute rankc_recompute_test "programs that recompute are proven*")

# Plans that train LoRA adapters, or only some parameters.
rankc_family(lora rankc_training_plans)
rankc_family_programs(lora host 3)
add_executable(rankc_lora_test lora/files_test.cpp lora/gradients_test.cpp lora/layouts_test.cpp
  lora/peft_test.cpp)
target_include_directories(rankc_lora_test PRIVATE programs)
target_link_libraries(rankc_lora_test PRIVATE rankc_training_plans rankc::codegen rankc::verify rankc_lora_host rankc_test_host_main
  nlohmann_json::nlohmann_json)
add_test(NAME lora COMMAND rankc_lora_test)

# Plans with fp8 linear layers.
rankc_family(fp8 rankc_training_plans)
rankc_family_programs(fp8 host 2)
add_executable(rankc_fp8_test fp8/losses_test.cpp fp8/lowering_test.cpp)
target_include_directories(rankc_fp8_test PRIVATE programs)
target_compile_definitions(rankc_fp8_test PRIVATE RANKC_TEST_ORACLES="${CMAKE_CURRENT_SOURCE_DIR}/oracles")
target_link_libraries(rankc_fp8_test PRIVATE rankc_check_lowered rankc_training_plans rankc::codegen rankc::verify rankc_fp8_host rankc_test_host_main rankc_test_json)
add_test(NAME fp8 COMMAND rankc_fp8_test)
add_test(NAME fp8_every_step COMMAND rankc_fp8_test "-tc=losses are*")
set_tests_properties(fp8_every_step PROPERTIES LABELS long TIMEOUT 3600 ENVIRONMENT RANKC_EVERY_STEP=1)

# Plans that shard sequences (cp): ranks exchange heads by all-to-all, or send keys and values around a ring.
rankc_family(sequences rankc_sequences_plans)
rankc_sampled_programs(sequences 1 5 72)
add_executable(rankc_sequences_test sequences/lowering_test.cpp families/counts.cpp)
target_include_directories(rankc_sequences_test PRIVATE programs)
target_link_libraries(rankc_sequences_test PRIVATE rankc_family_split rankc_sequences_plans rankc::codegen rankc::verify rankc_sequences_host rankc_test_host_main)
add_test(NAME sequences COMMAND rankc_sequences_test)
rankc_every_program(sequences_every_program rankc_sequences_test sequences)
rankc_every_mutant(sequences rankc_sequences_test "certificates are accepted*")

# Plans with documents in their sequences.
rankc_family(documents rankc_sequences_plans)
rankc_sampled_programs(documents 1 5 29)
add_executable(rankc_documents_test documents/embedded_test.cpp documents/lowering_test.cpp documents/packed_test.cpp families/counts.cpp)
target_include_directories(rankc_documents_test PRIVATE programs "${rankc_SOURCE_DIR}/runtime/trainer")
target_link_libraries(rankc_documents_test PRIVATE rankc_family_gradients rankc_family_split rankc_check_lowered rankc_sequences_plans rankc::codegen rankc::verify rankc_documents_host rankc_test_host_main)
add_test(NAME documents COMMAND rankc_documents_test)
rankc_every_program(documents_every_program rankc_documents_test documents)
rankc_every_mutant(documents rankc_documents_test "certificates are accepted*")

# Models that read dense features.
rankc_family(encoders rankc_sequences_plans)
rankc_registered_programs(rankc_encoders_host rankc_encoders_generate host 2)
add_executable(rankc_encoders_test encoders/evaluation_test.cpp encoders/lowering_test.cpp encoders/oracle_test.cpp families/counts.cpp)
target_include_directories(rankc_encoders_test PRIVATE programs families)
target_link_libraries(rankc_encoders_test PRIVATE rankc_family_gradients rankc_family_split rankc_check_lowered rankc_sequences_plans rankc::codegen rankc::verify rankc_encoders_host rankc_test_host_main)
target_compile_definitions(rankc_encoders_test PRIVATE RANKC_TEST_ORACLES="${CMAKE_CURRENT_SOURCE_DIR}/oracles" RANKC_FAMILIES=2 RANKC_PLANS=30)
add_test(NAME encoders COMMAND rankc_encoders_test)

# Models that declare inputs of a step.
rankc_family(inputs rankc_sequences_plans)
rankc_registered_programs(rankc_inputs_host rankc_inputs_generate host 1)
add_executable(rankc_inputs_test inputs/inputs_test.cpp inputs/lowering_test.cpp families/counts.cpp)
target_include_directories(rankc_inputs_test PRIVATE programs)
target_link_libraries(rankc_inputs_test PRIVATE rankc_family_gradients rankc_family_split rankc_check_lowered rankc_sequences_plans rankc::codegen rankc::verify rankc_inputs_host rankc_test_host_main)
target_compile_definitions(rankc_inputs_test PRIVATE RANKC_FAMILIES=1 RANKC_PLANS=10)
add_test(NAME inputs COMMAND rankc_inputs_test)

# Plans with a loss that ignores some labels.
rankc_family(masked rankc_sequences_plans)
rankc_sampled_programs(masked 1 5 40)
add_executable(rankc_masked_test masked/labels_test.cpp masked/lowering_test.cpp masked/oracle_test.cpp families/counts.cpp)
target_include_directories(rankc_masked_test PRIVATE programs families)
target_link_libraries(rankc_masked_test PRIVATE rankc_family_gradients rankc_family_split rankc_check_lowered rankc_equivalence_testing rankc_sequences_plans rankc::codegen rankc::verify rankc_masked_host rankc_test_host_main nlohmann_json::nlohmann_json)
target_compile_definitions(rankc_masked_test PRIVATE RANKC_TEST_ORACLES="${CMAKE_CURRENT_SOURCE_DIR}/oracles")
add_test(NAME masked COMMAND rankc_masked_test)
rankc_every_program(masked_every_program rankc_masked_test masked)
rankc_every_mutant(masked rankc_masked_test "programs with ignored labels*,a mean of means*")

# Plans with packed documents and a loss that ignores labels.
rankc_family(packed rankc_sequences_plans)
rankc_registered_programs(rankc_packed_host rankc_packed_generate host 1)
add_executable(rankc_packed_test packed/isolation_test.cpp packed/labels_test.cpp packed/lowering_test.cpp packed/oracle_test.cpp families/counts.cpp)
target_include_directories(rankc_packed_test PRIVATE programs families)
target_link_libraries(rankc_packed_test PRIVATE rankc_family_gradients rankc_family_split rankc_equivalence_testing rankc_sequences_plans rankc::codegen rankc::verify rankc_packed_host rankc_test_host_main nlohmann_json::nlohmann_json)
target_compile_definitions(rankc_packed_test PRIVATE RANKC_TEST_ORACLES="${CMAKE_CURRENT_SOURCE_DIR}/oracles" RANKC_FAMILIES=2 RANKC_PLANS=14)
add_test(NAME packed COMMAND rankc_packed_test)

# Plans with a loss in which labels have weights.
rankc_family(weighted rankc_sequences_plans)
rankc_sampled_programs(weighted 2 4 41)
add_executable(rankc_weighted_test weighted/lowering_test.cpp weighted/oracle_test.cpp weighted/weights_test.cpp families/counts.cpp)
target_include_directories(rankc_weighted_test PRIVATE programs families)
target_link_libraries(rankc_weighted_test PRIVATE rankc_family_gradients rankc_family_split rankc_check_lowered rankc_equivalence_testing rankc_sequences_plans rankc::codegen rankc::verify rankc_weighted_host rankc_test_host_main nlohmann_json::nlohmann_json)
target_compile_definitions(rankc_weighted_test PRIVATE RANKC_TEST_ORACLES="${CMAKE_CURRENT_SOURCE_DIR}/oracles")
add_test(NAME weighted COMMAND rankc_weighted_test)
rankc_every_program(weighted_every_program rankc_weighted_test weighted)
rankc_every_mutant(weighted rankc_weighted_test "a mean of weighted means*")

# Plans with attention windows, softcaps, scales, sinks, and value heads of another size than key heads.
rankc_family(attention rankc_sequences_plans)
rankc_sampled_programs(attention 2 12 67)
add_executable(rankc_attention_test attention/lowering_test.cpp attention/oracle_test.cpp attention/pytorch_test.cpp families/counts.cpp)
target_include_directories(rankc_attention_test PRIVATE programs families)
target_link_libraries(rankc_attention_test PRIVATE rankc_family_gradients rankc_family_split rankc_check_lowered rankc_sequences_plans rankc::codegen rankc::verify rankc_attention_host rankc_test_host_main nlohmann_json::nlohmann_json)
target_compile_definitions(rankc_attention_test PRIVATE RANKC_TEST_ORACLES="${CMAKE_CURRENT_SOURCE_DIR}/oracles")
add_test(NAME attention COMMAND rankc_attention_test)
rankc_every_program(attention_every_program rankc_attention_test attention)
rankc_every_mutant(attention rankc_attention_test "programs of windows*")

add_executable(rankc_sample_test families/sample_test.cpp)
target_link_libraries(rankc_sample_test PRIVATE rankc_write_programs rankc_experts_plans
  rankc_sequences_plans rankc_odd_plans rankc_test_main)
add_test(NAME programs_sample COMMAND rankc_sample_test)

# Plans with each optimizer.
rankc_family(optimizer rankc_training_plans)
rankc_sampled_programs(optimizer 2)
add_executable(rankc_optimizer_test optimizer/update_test.cpp optimizer/layouts_test.cpp optimizer/checkpoint_test.cpp optimizer/lowering_test.cpp)
target_include_directories(rankc_optimizer_test PRIVATE programs)
target_link_libraries(rankc_optimizer_test PRIVATE rankc_check_lowered rankc_training_plans rankc::codegen rankc::verify rankc_optimizer_host rankc_test_host_main)
add_test(NAME optimizer COMMAND rankc_optimizer_test)
rankc_every_program(optimizer_every_program rankc_optimizer_test optimizer)
rankc_every_mutant(optimizer rankc_optimizer_test "programs of every optimizer*")

# Models in Hugging Face files.
rankc_family(hugging_face rankc_training_plans)
rankc_family_programs(hugging_face host 1)
add_executable(rankc_hugging_face_test hugging_face/configs_test.cpp hugging_face/families_test.cpp
  hugging_face/family_files_test.cpp hugging_face/files_test.cpp hugging_face/kept_test.cpp hugging_face/oracle_test.cpp hugging_face/own_names_test.cpp hugging_face/packed_test.cpp hugging_face/padded_test.cpp hugging_face/torch_test.cpp)
target_include_directories(rankc_hugging_face_test PRIVATE programs)
target_link_libraries(rankc_hugging_face_test PRIVATE rankc_hugging_face_host rankc_test_host_main nlohmann_json::nlohmann_json)
target_compile_definitions(rankc_hugging_face_test PRIVATE RANKC_TEST_ORACLES="${CMAKE_CURRENT_SOURCE_DIR}/oracles" RANKC_HUGGING_FACE_MODELS=11)
add_test(NAME hugging_face COMMAND rankc_hugging_face_test)

foreach(family IN ITEMS odd experts balance routing documents attention)
  add_test(NAME ${family}_every_element COMMAND rankc_${family}_test "-tc=gradients of plans*")
  set_tests_properties(${family}_every_element PROPERTIES LABELS long TIMEOUT 3600 ENVIRONMENT RANKC_EVERY_ELEMENT=1)
endforeach()

if(RANKC_GPU_PROGRAMS)
  rankc_gradients_cuda_test(odd 16 93 74 101)
  target_sources(rankc_odd_cuda PRIVATE odd/silu.cu odd/square_loss.cu)
  rankc_gradients_cuda_test(experts 8 14 25 68)
  rankc_gradients_cuda_test(columns 2 5 0 11)  # two ranks with experts and two of columns
  rankc_on_one_gpu(columns_cuda_gpu4 4 rankc_columns_cuda_test)
  rankc_gradients_cuda_test(independent 2 3 6 10)
  rankc_gradients_cuda_test(balance 4 5 10 28)
  rankc_gradients_cuda_test(routing 4 8 25 23)
  rankc_gradients_cuda_test(sequences 4 5 16 35)
  rankc_gradients_cuda_test(documents 2 5 8 14)
  rankc_gradients_cuda_test(attention 3 13 27 26)
  rankc_gradients_cuda_test(masked 4 6 16 15)
  rankc_gradients_cuda_test(weighted 3 5 9 7)
  rankc_gradients_cuda_test(encoders 2 4 18 8)
  rankc_family_programs(recompute cuda 4)
  rankc_family_cuda_test(recompute "1;2" recompute/cuda_test.cpp)
  rankc_family_programs(lora cuda 3)
  rankc_family_cuda_test(lora "1;2" lora/cuda_test.cpp)
  target_link_libraries(rankc_lora_cuda_test PRIVATE rankc_lora_host)
  rankc_family_programs(fp8 cuda 3)
  rankc_family_cuda_test(fp8 "1;2" fp8/cuda_test.cpp)
  target_compile_definitions(rankc_fp8_cuda_test PRIVATE RANKC_TEST_ORACLES="${CMAKE_CURRENT_SOURCE_DIR}/oracles")
  target_link_libraries(rankc_fp8_cuda_test PRIVATE rankc_fp8_host rankc_test_json)
  rankc_family_programs(optimizer cuda 3)
  target_sources(rankc_optimizer_cuda PRIVATE odd/adagrad.cu odd/lion.cu)
  rankc_family_cuda_test(optimizer "1;2" optimizer/cuda_test.cpp)
endif()
