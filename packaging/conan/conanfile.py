"""Recipe for Conan 2, from this repository: conan create packaging/conan"""

import os

from conan import ConanFile
from conan.errors import ConanInvalidConfiguration
from conan.tools.build import check_min_cppstd, stdcpp_library
from conan.tools.cmake import CMake, CMakeToolchain, cmake_layout
from conan.tools.files import copy, rm, rmdir
from conan.tools.gnu import PkgConfigDeps


class TaiyenRecipe(ConanFile):
    name = "taiyen"
    version = "0.1.0"
    description = "Memory that is durable by itself"
    license = "Apache-2.0"
    topics = ("persistence", "allocator", "transactions", "memory")
    package_type = "library"
    settings = "os", "arch", "compiler", "build_type"
    options = {"shared": [True, False], "with_pack": [True, False]}
    default_options = {"shared": False, "with_pack": False}

    def export_sources(self):
        root = os.path.join(self.recipe_folder, "..", "..")
        for pattern in ("CMakeLists.txt", "cmake/*", "include/*", "src/*", "packages/*", "docs/man/*", "LICENSE", "NOTICE", "CHANGELOG.md"):
            copy(self, pattern, root, self.export_sources_folder, excludes="packages/*/tests/*")

    def layout(self):
        cmake_layout(self)

    def requirements(self):
        self.requires("xxhash/[>=0.8 <1]", headers=True, libs=False, visible=False)
        if self.options.with_pack:
            self.requires("lz4/[>=1.9 <2]")
            self.requires("zstd/[>=1.5 <2]")

    def build_requirements(self):
        if self.options.with_pack and not self.conf.get("tools.gnu:pkg_config", check_type=str):
            self.tool_requires("pkgconf/[>=1.9 <3]")

    def validate(self):
        if self.settings.os != "Linux" or self.settings.arch != "x86_64":
            raise ConanInvalidConfiguration("Taiyen runs on Linux on x86-64")
        if self.settings.get_safe("compiler.cppstd"):
            check_min_cppstd(self, 17)  # of the headers; the library is always built as C++20

    def generate(self):
        toolchain = CMakeToolchain(self)
        for part in ("STANDBY", "CLI", "BENCH", "EXAMPLES", "TESTS"):
            toolchain.cache_variables[f"TAIYEN_BUILD_{part}"] = False
        toolchain.cache_variables["TAIYEN_BUILD_PACK"] = bool(self.options.with_pack)
        toolchain.generate()
        PkgConfigDeps(self).generate()

    def build(self):
        cmake = CMake(self)
        cmake.configure()
        cmake.build()

    def package(self):
        CMake(self).install()
        for file in ("LICENSE", "NOTICE"):
            copy(self, file, self.source_folder, os.path.join(self.package_folder, "licenses"))
        # Both kinds are built: one of them is the package's. CMake's and pkg-config's files are Conan's to make.
        libraries = os.path.join(self.package_folder, "lib")
        rm(self, "*.a" if self.options.shared else "*.so*", libraries)
        for folder in ("cmake", "pkgconfig"):
            rmdir(self, os.path.join(libraries, folder))
        rmdir(self, os.path.join(self.package_folder, "share"))

    def package_info(self):
        self.cpp_info.set_property("cmake_file_name", "taiyen")
        core = self.cpp_info.components["taiyen"]
        core.libs = ["taiyen"]
        core.system_libs = ["pthread"]
        core.set_property("cmake_target_name", "taiyen::taiyen")
        core.set_property("pkg_config_name", "taiyen")
        malloc = self.cpp_info.components["malloc"]
        malloc.libs = ["taiyen-malloc"]
        malloc.requires = [] if self.options.shared else ["taiyen"]
        malloc.set_property("cmake_target_name", "taiyen::malloc")
        malloc.set_property("pkg_config_name", "taiyen-malloc")
        twophase = self.cpp_info.components["twophase"]
        twophase.libs = ["taiyen-twophase"]
        twophase.requires = ["taiyen"]
        if not self.options.shared and stdcpp_library(self):
            twophase.system_libs = [stdcpp_library(self)]
        twophase.set_property("cmake_target_name", "taiyen::twophase")
        twophase.set_property("pkg_config_name", "taiyen-twophase")
        if self.options.with_pack:
            pack = self.cpp_info.components["pack"]
            pack.libs = ["taiyen-pack"]
            pack.requires = ["taiyen", "lz4::lz4", "zstd::zstd"]
            if not self.options.shared and stdcpp_library(self):
                pack.system_libs = [stdcpp_library(self)]
            pack.set_property("cmake_target_name", "taiyen::pack")
            pack.set_property("pkg_config_name", "taiyen-pack")
            ship = self.cpp_info.components["ship"]
            ship.libs = ["taiyen-ship"]
            ship.requires = ["taiyen", "pack", "twophase", "lz4::lz4"]
            if not self.options.shared and stdcpp_library(self):
                ship.system_libs = [stdcpp_library(self)]
            ship.set_property("cmake_target_name", "taiyen::ship")
            ship.set_property("pkg_config_name", "taiyen-ship")
