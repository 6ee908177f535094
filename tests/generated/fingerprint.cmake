# cmake -DGENERATOR=<exe> -DPROGRAM=<exe> -DTOOL=<rankc> -DSCRATCH=<folder> -P fingerprint.cmake
# A program and the certificate of its plan have the same fingerprint, and a certificate in another type has
# another.
cmake_minimum_required(VERSION 3.25)
file(MAKE_DIRECTORY "${SCRATCH}")
execute_process(COMMAND "${PROGRAM}" --version OUTPUT_VARIABLE version COMMAND_ERROR_IS_FATAL ANY)
if(NOT version MATCHES "calls ([0-9a-f]+)\\)")
  message(FATAL_ERROR "--version says no fingerprint: ${version}")
endif()
set(own "${CMAKE_MATCH_1}")
foreach(type IN ITEMS f32 f64)
  execute_process(COMMAND "${GENERATOR}" certificate --target host --dtype ${type} --out "${SCRATCH}/${type}.json"
    COMMAND_ERROR_IS_FATAL ANY)
  execute_process(COMMAND "${TOOL}" verify "${SCRATCH}/${type}.json" OUTPUT_VARIABLE verified COMMAND_ERROR_IS_FATAL ANY)
  if(NOT verified MATCHES "\ncalls: ([0-9a-f]+),")
    message(FATAL_ERROR "verify says no fingerprint: ${verified}")
  endif()
  set(of_${type} "${CMAKE_MATCH_1}")
endforeach()
if(NOT own STREQUAL of_f32 OR own STREQUAL of_f64)
  message(FATAL_ERROR "--version: ${own}; verify: ${of_f32} in f32, ${of_f64} in f64")
endif()
