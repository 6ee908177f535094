# Defines rankc::text_libraries (PCRE2 and utf8proc, which tokenizer.json needs) if both are found; else the
# target does not exist. Static libraries come first, so a program that is copied to another machine needs no
# library there. Included by the build and by the installed package.
if(NOT TARGET rankc::text_libraries)
  find_library(RANKC_PCRE2_LIBRARY NAMES libpcre2-8.a pcre2-8)
  find_path(RANKC_PCRE2_INCLUDE_DIR pcre2.h)
  find_library(RANKC_UTF8PROC_LIBRARY NAMES libutf8proc.a utf8proc)
  find_path(RANKC_UTF8PROC_INCLUDE_DIR utf8proc.h)
  mark_as_advanced(RANKC_PCRE2_LIBRARY RANKC_PCRE2_INCLUDE_DIR RANKC_UTF8PROC_LIBRARY RANKC_UTF8PROC_INCLUDE_DIR)
  if(RANKC_PCRE2_LIBRARY AND RANKC_PCRE2_INCLUDE_DIR AND RANKC_UTF8PROC_LIBRARY AND RANKC_UTF8PROC_INCLUDE_DIR)
    add_library(rankc::text_libraries INTERFACE IMPORTED GLOBAL)
    set_target_properties(rankc::text_libraries PROPERTIES
      INTERFACE_LINK_LIBRARIES "${RANKC_PCRE2_LIBRARY};${RANKC_UTF8PROC_LIBRARY}"
      INTERFACE_INCLUDE_DIRECTORIES "${RANKC_PCRE2_INCLUDE_DIR};${RANKC_UTF8PROC_INCLUDE_DIR}")
  endif()
endif()
