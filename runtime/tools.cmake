# filled by its part
