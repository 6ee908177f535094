# Makes rankc::gloo, which carries data between processes on the host, where Gloo is found; there is none otherwise.
# Included by the build and by the installed package.
if(NOT TARGET rankc::gloo)
  find_library(RANKC_GLOO_LIBRARY gloo)
  find_path(RANKC_GLOO_INCLUDE_DIR gloo/transport/tcp/device.h)
  if(RANKC_GLOO_LIBRARY AND RANKC_GLOO_INCLUDE_DIR)
    add_library(rankc::gloo INTERFACE IMPORTED GLOBAL)
    set_target_properties(rankc::gloo PROPERTIES
      INTERFACE_LINK_LIBRARIES "${RANKC_GLOO_LIBRARY}"
      INTERFACE_INCLUDE_DIRECTORIES "${RANKC_GLOO_INCLUDE_DIR}")
  endif()
endif()
