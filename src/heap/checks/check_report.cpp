// Findings: as a struct for a callback and as text for a person.
#include "check_runtime.hpp"

#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace taiyen {
namespace {

unsigned long long figure(uint64_t value) {
    return value;
}

ty_site site_of(const heap_checks &checks, uint32_t site, uint32_t thread) {
    if (site == 0)
        return {nullptr, 0, thread};
    const known_site &known = checks.sites.at(site);
    return {known.frames, known.frame_count, thread};
}

ty_finding metrics_of(const heap_checks &checks, const finding &what) {
    const check_record &record = what.record;
    ty_finding finding{};
    finding.struct_size = sizeof finding;
    finding.kind = what.kind;
    finding.heap = checks.heap;
    finding.address = reinterpret_cast<void *>(what.address);
    if (record.real == 0)
        return finding;
    finding.block = checks.heap->base + record.user;
    finding.size_bytes = finding.total_bytes = record.user_bytes;
    finding.block_count = 1;
    finding.allocated = site_of(checks, record.site, record.thread);
    if (record.freed_thread != 0)
        finding.freed = site_of(checks, record.freed_site, record.freed_thread);
    return finding;
}

// The position of an address relative to a block.
void add_place(text_writer &text, const ty_finding &finding) {
    uintptr_t start = reinterpret_cast<uintptr_t>(finding.block);
    uintptr_t at = reinterpret_cast<uintptr_t>(finding.address);
    uintptr_t end = start + finding.size_bytes;
    if (at < start)
        text.add("%llu byte%s before", figure(start - at), plural(start - at));
    else if (at >= end)
        text.add("%llu byte%s after the end of", figure(at - end + 1), plural(at - end + 1));
    else
        text.add("at byte %llu of", figure(at - start));
    text.add(" the block at %p of %zu byte%s", finding.block, finding.size_bytes, plural(finding.size_bytes));
}

void add_noticed(text_writer &text, const char *verb) {
    if (verb != nullptr)
        text.add(", noticed by its %s", verb);
    text.add("\n");
}

void add_distance(text_writer &text, const ty_finding &finding) {
    const bool before = finding.address < finding.block;
    const auto distance =
        static_cast<size_t>(static_cast<char *>(finding.address) - static_cast<char *>(finding.block));
    const size_t away = before ? size_t{0} - distance : distance;
    text.add("it is no block, it lies %s%zu byte%s from the start of the block at %p of %zu byte%s\n",
             before ? "before it, " : "", away, plural(away), finding.block, finding.size_bytes,
             plural(finding.size_bytes));
}

void add_refusal(text_writer &text, const ty_finding &finding, const char *verb) {
    text.add("%s of %p: ", verb, finding.address);
    if (finding.kind == TY_FINDING_WILD_FREE)
        text.add("no block starts there; it was freed, or never allocated\n");
    else if (finding.kind == TY_FINDING_FREED_TWICE)
        text.add("the block at %p of %zu byte%s is freed already\n", finding.block, finding.size_bytes,
                 plural(finding.size_bytes));
    else
        add_distance(text, finding);
}

} // namespace

void text_writer::add(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(text + used, finding_text_bytes - used, format, arguments);
    va_end(arguments);
    used += static_cast<size_t>(length > 0 ? length : 0);
    if (used >= finding_text_bytes)
        used = finding_text_bytes - 1;
}

void text_writer::add_site(const char *done, const ty_site &site) {
    if (site.thread != 0)
        add("  %s by thread %llu%s\n", done, figure(site.thread), site.frame_count != 0 ? ":" : "");
    else if (site.frame_count != 0)
        add("  %s by several threads:\n", done);
    for (size_t i = 0; i < site.frame_count; i++) {
        char place[256];
        os::describe_code(site.frames[i], place, sizeof place);
        add("    #%zu %s\n", i, place);
    }
}

void write_finding(text_writer &text, const ty_finding &finding, const char *verb, bool write) {
    text.add("taiyen: ");
    switch (finding.kind) {
    case TY_FINDING_WRITE_BEFORE:
    case TY_FINDING_WRITE_BEHIND:
        text.add("a write at %p, ", finding.address);
        add_place(text, finding);
        add_noticed(text, verb);
        break;
    case TY_FINDING_WRITE_FREED:
        text.add("a write at %p after the free, ", finding.address);
        add_place(text, finding);
        text.add("\n");
        break;
    case TY_FINDING_ACCESS:
        text.add("a %s at %p%s, ", write ? "write" : "read", finding.address,
                 finding.freed.thread != 0 ? " after the free" : "");
        add_place(text, finding);
        text.add("\n");
        break;
    default:
        add_refusal(text, finding, verb);
    }
    if (finding.block == nullptr)
        return;
    text.add_site("allocated", finding.allocated);
    if (finding.freed.thread != 0)
        text.add_site("freed", finding.freed);
}

void write_sum(text_writer &text, const ty_site_use &use, const char *state) {
    text.add("taiyen: %zu block%s of %zu byte%s in all %s, such as the block at %p of %zu byte%s\n", use.block_count,
             plural(use.block_count), use.total_bytes, plural(use.total_bytes), state, use.block, use.size_bytes,
             plural(use.size_bytes));
    text.add_site("allocated", use.site);
}

// The text lies in mapped memory: the stack may be a signal handler's.
void report(heap_checks &checks, const finding &what) {
    ty_finding finding = metrics_of(checks, what);
    void *memory;
    text_writer text{};
    if (os::map_memory(finding_text_bytes, os::memory_hint::none, &memory) == TY_OK) {
        text.text = static_cast<char *>(memory);
        write_finding(text, finding, what.verb, what.write);
    }
    finding.text = text.text != nullptr ? text.text : "taiyen: a finding, and no memory for its text\n";
    if (checks.found != nullptr) {
        checks.found(&finding, checks.found_context);
    } else {
        os::write_standard_error(finding.text, strlen(finding.text));
        if (what.kind != TY_FINDING_ACCESS) // an access ends with its fault
            abort();
    }
    if (text.text != nullptr)
        os::unmap_memory(text.text, finding_text_bytes);
}

void report_all(heap_checks &checks, const finding_list &findings) {
    for (size_t i = 0; i < findings.count; i++)
        report(checks, findings.all[i]);
}

} // namespace taiyen
