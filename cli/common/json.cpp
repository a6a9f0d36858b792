#include "common/json.hpp"

#include "commands.hpp"
#include <cstdio>
#include <nlohmann/json.hpp>

namespace cli::json {

std::string wide(uint64_t number) {
    return std::to_string(number);
}

std::string identity(const uint8_t (&bytes)[16]) {
    std::string hex;
    for (uint8_t byte : bytes) {
        static constexpr char digits[] = "0123456789abcdef";
        hex += digits[byte >> 4];
        hex += digits[byte & 15];
    }
    return hex;
}

document classes(const std::vector<ty_class_stats> &classes) {
    document all = document::array();
    for (const ty_class_stats &one : classes)
        all.push_back({{"block_bytes", wide(one.block_bytes)},
                       {"spans", wide(one.spans)},
                       {"span_bytes", wide(one.span_bytes)},
                       {"block_count", wide(one.block_count)},
                       {"live_blocks", wide(one.live_blocks)},
                       {"live_bytes", wide(one.live_bytes)}});
    return all;
}

document error(ty_status status) {
    return {{"status", ty_status_name(status)}, {"text", as_options(ty_error_text())}};
}

void print(const document &one) {
    // A path need not be UTF-8; invalid bytes are replaced.
    std::puts(one.dump(-1, ' ', false, document::error_handler_t::replace).c_str());
}

} // namespace cli::json
