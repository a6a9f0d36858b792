#include "read_file.hpp"
#include "heap_file.hpp"
#include <algorithm>
#include <cerrno>
#include <memory>
#include <zlib.h>

namespace demo {

std::string read_whole(const std::string &path) {
    errno = 0;
    std::unique_ptr<gzFile_s, int (*)(gzFile)> file(gzopen(path.c_str(), "rb"), gzclose_r);
    if (!file)
        throw failure("cannot open " + path + ": " + std::strerror(errno == 0 ? ENOMEM : errno));
    constexpr size_t piece = 1 << 20;
    std::string text;
    for (int got = 1; got > 0;) {
        size_t end = text.size();
        text.resize(end + piece);
        got = gzread(file.get(), text.data() + end, piece);
        text.resize(end + static_cast<size_t>(std::max(got, 0)));
    }
    int status = Z_OK;
    const char *reason = gzerror(file.get(), &status);
    if (status == Z_ERRNO)
        throw failure("cannot read " + path + ": " + std::strerror(errno));
    if (status != Z_OK) // gzerror's text starts with the path
        throw failure("cannot read " + std::string(reason) + "; the file is damaged or cut short: get it again");
    return text;
}

} // namespace demo
