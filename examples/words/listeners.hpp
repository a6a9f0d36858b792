// A program's own classes, unchanged for durable heaps: virtual functions, owning pointers, containers. Nothing here
// knows of heaps.
#pragma once

#include <array>
#include <cstddef>
#include <map>
#include <memory>
#include <set>
#include <string>

namespace words {

// Notified of each word that comes for the first time, and of each that is removed.
class listener {
public:
    virtual ~listener() = default;
    virtual void comes(const std::string &word) = 0;
    virtual void goes(const std::string &word) = 0;
    // Whether it is of the same kind, with the same content.
    virtual bool is_like(const listener &other) const = 0;
    virtual const char *name() const = 0;
};

// The words by their length.
class lengths : public listener {
public:
    void comes(const std::string &word) override;
    void goes(const std::string &word) override;
    bool is_like(const listener &other) const override;
    const char *name() const override { return "the words by length"; }

private:
    std::map<size_t, std::set<std::string>> words_;
};

// A tree of letters.
class spelling : public listener {
public:
    void comes(const std::string &word) override;
    void goes(const std::string &word) override;
    bool is_like(const listener &other) const override;
    const char *name() const override { return "the tree of letters"; }

private:
    struct node {
        std::array<std::unique_ptr<node>, 27> next; // a to z, and all others
        bool ends_here = false;
    };
    static size_t place_of(char letter);
    static bool remove(node &from, const char *rest); // whether the node is no longer needed
    static bool alike(const node *one, const node *other);

    node first_;
};

} // namespace words
