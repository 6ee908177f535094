# The snippets of pages are parts of compiled files, links lead to pages, reference pages are complete, the page of faults names test
# cases, and the README's refusal is the compiler's output.
add_test(NAME readme/snippets COMMAND ${CMAKE_COMMAND} -DROOT=${rankc_SOURCE_DIR} -P ${CMAKE_CURRENT_SOURCE_DIR}/readme/snippets.cmake)
add_test(NAME readme/links COMMAND ${CMAKE_COMMAND} -DROOT=${rankc_SOURCE_DIR} -P ${CMAKE_CURRENT_SOURCE_DIR}/readme/links.cmake)
add_test(NAME readme/references COMMAND ${CMAKE_COMMAND} -DROOT=${rankc_SOURCE_DIR} -P ${CMAKE_CURRENT_SOURCE_DIR}/readme/references.cmake)
add_test(NAME readme/faults COMMAND ${CMAKE_COMMAND} -DROOT=${rankc_SOURCE_DIR} -P ${CMAKE_CURRENT_SOURCE_DIR}/readme/faults.cmake)
add_library(rankc_readme_refusal OBJECT readme/refused.cpp)
target_include_directories(rankc_readme_refusal PRIVATE "${rankc_SOURCE_DIR}/dsl/plans")
target_link_libraries(rankc_readme_refusal PRIVATE rankc::dsl)
