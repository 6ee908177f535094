# Defines rankc::openblas: OpenBLAS with its cblas.h. The build and the installed package include it.
if(NOT TARGET rankc::openblas)
  find_package(PkgConfig QUIET)
  if(PkgConfig_FOUND)
    pkg_check_modules(RANKC_OPENBLAS QUIET IMPORTED_TARGET openblas)
  endif()
  add_library(rankc::openblas INTERFACE IMPORTED GLOBAL)
  if(RANKC_OPENBLAS_FOUND)
    set_target_properties(rankc::openblas PROPERTIES
      INTERFACE_LINK_LIBRARIES "${RANKC_OPENBLAS_LINK_LIBRARIES}"
      INTERFACE_INCLUDE_DIRECTORIES "${RANKC_OPENBLAS_INCLUDE_DIRS}")
  else()
    set(BLA_VENDOR OpenBLAS)
    find_package(BLAS REQUIRED)
    find_path(RANKC_CBLAS_INCLUDE_DIR cblas.h PATH_SUFFIXES openblas openblas-pthread REQUIRED)
    set_target_properties(rankc::openblas PROPERTIES
      INTERFACE_LINK_LIBRARIES "${BLAS_LIBRARIES}"
      INTERFACE_INCLUDE_DIRECTORIES "${RANKC_CBLAS_INCLUDE_DIR}")
  endif()
endif()
