package application

import (
	"crypto/md5"
	"crypto/sha256"
	"fmt"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/slipway-platform/slipway/test/kit"
)

// gems returns the greeting gem, which contains C code, and the index of a mirror for the gem. The
// keys are URL paths.
func gems(t *testing.T) map[string][]byte {
	t.Helper()
	const specification = `--- !ruby/object:Gem::Specification
name: greeting
version: !ruby/object:Gem::Version
  version: 1.0.0
platform: ruby
authors: [A]
extensions: [ext/greeting/extconf.rb]
files: [ext/greeting/extconf.rb, ext/greeting/greeting.c]
require_paths: [lib]
summary: A greeting.
specification_version: 4
`
	const source = `#include <ruby.h>
static VALUE text(VALUE self) { return rb_str_new_cstr("hello"); }
void Init_greeting(void) { rb_define_singleton_method(rb_define_module("Greeting"), "text", text, 0); }
`
	gem := archived(t, map[string]string{
		"metadata.gz": string(compressed(t, specification)),
		"data.tar.gz": string(tarball(t, map[string]string{
			"ext/greeting/extconf.rb": "require 'mkmf'\ncreate_makefile 'greeting'\n",
			"ext/greeting/greeting.c": source,
		})),
	})
	info := fmt.Sprintf("---\n1.0.0 |checksum:%x\n", sha256.Sum256([]byte(gem)))
	return map[string][]byte{
		"/gems/versions":                fmt.Appendf(nil, "created_at: 2020-01-01T00:00:00Z\n---\ngreeting 1.0.0 %x\n", md5.Sum([]byte(info))),
		"/gems/info/greeting":           []byte(info),
		"/gems/gems/greeting-1.0.0.gem": []byte(gem),
	}
}

// nodeModule returns a Node.js package with C code and the given package.json. npm and Yarn compile
// the code with node-gyp.
func nodeModule(t *testing.T, manifest string) []byte {
	t.Helper()
	return tarball(t, map[string]string{
		"package/package.json": manifest,
		"package/index.js":     `module.exports = require("./build/Release/greeting.node")`,
		"package/binding.gyp":  `{"targets": [{"target_name": "greeting", "sources": ["greeting.c"]}]}`,
		"package/greeting.c": `#include <node_api.h>
NAPI_MODULE_INIT() {
	napi_value text;
	napi_create_string_utf8(env, "hello", NAPI_AUTO_LENGTH, &text);
	return text;
}
`,
	})
}

// perlModule returns a Perl distribution with C code.
func perlModule(t *testing.T) []byte {
	t.Helper()
	return tarball(t, map[string]string{
		"Greeting-1.0/Makefile.PL":     `use ExtUtils::MakeMaker; WriteMakefile(NAME => "Greeting", VERSION_FROM => "lib/Greeting.pm");`,
		"Greeting-1.0/lib/Greeting.pm": "package Greeting;\nour $VERSION = '1.0';\nrequire XSLoader;\nXSLoader::load();\n1;\n",
		"Greeting-1.0/Greeting.xs": `#include "EXTERN.h"
#include "perl.h"
#include "XSUB.h"

MODULE = Greeting  PACKAGE = Greeting

const char *
text()
  CODE:
    RETVAL = "hello";
  OUTPUT:
    RETVAL
`,
	})
}

// modules returns the example.com/greeting module in the layout of a Go module proxy.
func modules(t *testing.T) map[string][]byte {
	t.Helper()
	const module, path = "module example.com/greeting\n", "/go/example.com/greeting/@v/"
	return map[string][]byte{
		path + "list":        []byte("v1.0.0\n"),
		path + "v1.0.0.info": []byte(`{"Version": "v1.0.0"}`),
		path + "v1.0.0.mod":  []byte(module),
		path + "v1.0.0.zip": zipped(t, map[string]string{
			"example.com/greeting@v1.0.0/go.mod": module, "example.com/greeting@v1.0.0/text.go": "package greeting\n\nconst Text = \"hello\"\n",
		}),
	}
}

const (
	// project is the Maven project of a program that depends on a library from the mirror.
	project = `<project xmlns="http://maven.apache.org/POM/4.0.0">
<modelVersion>4.0.0</modelVersion>
<groupId>app</groupId><artifactId>app</artifactId><version>1</version>
<properties><maven.compiler.release>17</maven.compiler.release></properties>
<build><finalName>app</finalName></build>
<dependencies><dependency>
  <groupId>org.apache.commons</groupId><artifactId>commons-lang3</artifactId><version>3.12.0</version>
</dependency></dependencies>
</project>
`
	program = `public class App {
    public static void main(String[] arguments) {
        System.out.print(org.apache.commons.lang3.StringUtils.capitalize("hello"));
    }
}
`
)

// mavenRepository returns a directory with the Maven repository from the Java image.
func mavenRepository(t *testing.T, c *kit.Cluster) string {
	t.Helper()
	dir := t.TempDir()
	archive := c.RepositoryFile("bin", "samples", "java.tar")
	if output, err := exec.Command("tar", "-xf", archive, "-C", dir, "./usr/share/maven-repo", "./usr/share/java").CombinedOutput(); err != nil {
		t.Fatalf("unpack %s: %v\n%s", archive, err, output)
	}
	return filepath.Join(dir, "usr/share/maven-repo")
}
