# cmake -DOUTPUT=FILE -DFILES=A,B -P EmbedFiles.cmake: writes a .cc with the files as dashboard/assets.h declares them.
string(REPLACE "," ";" FILES "${FILES}")
set(rows "")
foreach(path IN LISTS FILES)
  cmake_path(GET path FILENAME name)
  file(READ "${path}" content)
  file(SHA256 "${path}" hash)
  string(APPEND rows "    {\"${name}\",\n")
  string(APPEND rows "R\"fairlead(${content})fairlead\",\n     \"${hash}\"},\n")
endforeach()
file(WRITE "${OUTPUT}.new" "// Made by cmake/EmbedFiles.cmake.
#include \"dashboard/assets.h\"

namespace fairlead::dashboard {

const Asset kAssets[] = {
${rows}};
const size_t kAssetCount = sizeof(kAssets) / sizeof(kAssets[0]);

}  // namespace fairlead::dashboard
")
file(RENAME "${OUTPUT}.new" "${OUTPUT}")
