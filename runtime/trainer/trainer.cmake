# The trainer on top of the core and of launching: command line, data, initialisation, checkpoints, metrics.
find_package(fmt REQUIRED)
find_package(CLI11 REQUIRED)
find_package(nlohmann_json REQUIRED)

add_library(rankc_trainer STATIC
  trainer/array_folder.cpp
  trainer/beginning.cpp
  trainer/beside_tokens.cpp
  trainer/bus_error.cpp
  trainer/call_account.cpp
  trainer/checkpoint.cpp
  trainer/checkpoint_index.cpp
  trainer/command_line.cpp
  trainer/console.cpp
  trainer/balanced_documents.cpp
  trainer/data.cpp
  trainer/data_files.cpp
  trainer/data_record.cpp
  trainer/data_spec.cpp
  trainer/document_borders.cpp
  trainer/document_ends.cpp
  trainer/earlier_run.cpp
  trainer/evaluate.cpp
  trainer/export.cpp
  trainer/export_folder.cpp
  trainer/folder_lock.cpp
  trainer/generate.cpp
  trainer/hash.cpp
  trainer/held_out_share.cpp
  trainer/hugging_face_config.cpp
  trainer/hugging_face_export.cpp
  trainer/hugging_face_names.cpp
  trainer/hugging_face_files.cpp
  trainer/hugging_face_origin.cpp
  trainer/hugging_face_source.cpp
  trainer/hugging_face_tensors.cpp
  trainer/injection.cpp
  trainer/known_data.cpp
  trainer/learning_rate.cpp
  trainer/llm_c_header.cpp
  trainer/main.cpp
  trainer/mapped_file.cpp
  trainer/megatron_index.cpp
  trainer/megatron_order.cpp
  trainer/mean_loss.cpp
  trainer/measure.cpp
  trainer/merged_source.cpp
  trainer/metrics.cpp
  trainer/metrics_file.cpp
  trainer/recipe_changes.cpp
  trainer/resume.cpp
  trainer/router_metrics.cpp
  trainer/row_logits.cpp
  trainer/mixture.cpp
  trainer/not_finite.cpp
  trainer/npy_file.cpp
  trainer/orderly_stop.cpp
  trainer/outputs.cpp
  trainer/packed_examples.cpp
  trainer/parameters.cpp
  trainer/peft_adapter.cpp
  trainer/piece_source.cpp
  trainer/plan_optimizer.cpp
  trainer/prompt_text.cpp
  trainer/replicas.cpp
  trainer/run_data.cpp
  trainer/run_state.cpp
  trainer/safetensors_reader.cpp
  trainer/safetensors_writer.cpp
  trainer/sample_source.cpp
  trainer/saver.cpp
  trainer/score.cpp
  trainer/score_requests.cpp
  trainer/skip_batches.cpp
  trainer/snapshot.cpp
  trainer/source_in_files.cpp
  trainer/step_files.cpp
  trainer/step_loop.cpp
  trainer/steps.cpp
  trainer/tensor_names.cpp
  trainer/tensor_source.cpp
  trainer/tensorboard.cpp
  trainer/token_bytes.cpp
  trainer/token_file.cpp
  trainer/token_mask.cpp
  trainer/token_weights.cpp
  trainer/time_table.cpp
  trainer/trace_file.cpp
  trainer/trainer.cpp
  trainer/vocabulary_source.cpp
  trainer/write_checkpoint.cpp)
# The learning rate must equal the number that the plan's compiler has computed, so no multiply-add is fused.
set_source_files_properties(trainer/learning_rate.cpp PROPERTIES COMPILE_OPTIONS -ffp-contract=off)
# The code runs once, and optimizing CLI11's templates takes long.
set_source_files_properties(trainer/command_line.cpp PROPERTIES COMPILE_OPTIONS $<$<CONFIG:Release>:-O1>)
add_library(rankc::trainer ALIAS rankc_trainer)
set_target_properties(rankc_trainer PROPERTIES EXPORT_NAME trainer UNITY_BUILD ON)
target_compile_features(rankc_trainer PUBLIC cxx_std_20)
target_compile_definitions(rankc_trainer PRIVATE RANKC_VERSION="${rankc_VERSION}")
if(RANKC_INJECT)
  set_source_files_properties(trainer/injection.cpp PROPERTIES COMPILE_DEFINITIONS RANKC_INJECT)
endif()
target_include_directories(rankc_trainer PUBLIC
  $<BUILD_INTERFACE:${CMAKE_CURRENT_SOURCE_DIR}/trainer> $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
# A consumer of the installed package needs fmt's library; the other two are headers that only these sources
# include.
target_link_libraries(rankc_trainer PUBLIC rankc_launch rankc_tokenizer PRIVATE fmt::fmt
  Threads::Threads $<BUILD_INTERFACE:CLI11::CLI11> $<BUILD_INTERFACE:nlohmann_json::nlohmann_json> $<BUILD_INTERFACE:rankc_warnings>)
target_sources(rankc_trainer PUBLIC FILE_SET HEADERS BASE_DIRS trainer FILES trainer/rankc/trainer/main.hpp)
