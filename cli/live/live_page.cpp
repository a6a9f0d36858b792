#include "live/live_page.hpp"

#include "live_page_parts.hpp"

namespace cli {

namespace {

// In a script that is not JavaScript, the browser looks only for the end tag.
std::string within_html(const std::string &json) {
    std::string text;
    for (const char one : json)
        one == '<' ? text += "\\u003c" : text += one;
    return text;
}

std::string put_in(std::string text, const std::string &mark, const std::string &part) {
    for (size_t at = 0; (at = text.find(mark, at)) != std::string::npos; at += part.size())
        text.replace(at, mark.size(), part);
    return text;
}

} // namespace

std::string live_page(const live_state &state, const std::string &nonce, bool is_saved) {
    const json::document all{
        {"saved", is_saved}, {"metrics", state.metrics}, {"map", state.map}, {"extents", state.extents}};
    std::string text = put_in(live_page_html, "{{STYLE}}", live_page_css);
    text = put_in(text, "{{SCRIPT}}", live_page_js);
    text = put_in(text, "{{NONCE}}", nonce);
    return put_in(text, "{{STATE}}", // last, as it may contain such marks
                  within_html(all.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace)));
}

} // namespace cli
