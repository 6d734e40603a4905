package application

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"cmp"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/slipway-platform/slipway/test/kit"
)

// mirror serves a single package, greeting, in the formats of the npm, Python, Go, Composer, CPAN
// and RubyGems registries. If languages contains Java, it also serves a Maven repository.
func mirror(t *testing.T, c *kit.Cluster, languages []string) (url string) {
	t.Helper()
	mux := http.NewServeMux()
	url = serve(t, c, mux)
	manifest := map[string]any{"name": "greeting", "version": "1.0.0", "main": "index.js"}
	text, err := json.Marshal(manifest)
	if err != nil {
		t.Fatal(err)
	}
	manifest["dist"] = map[string]string{"tarball": url + "/npm/greeting/-/greeting-1.0.0.tgz"}
	packument, err := json.Marshal(map[string]any{
		"name": "greeting", "dist-tags": map[string]string{"latest": "1.0.0"}, "versions": map[string]any{"1.0.0": manifest},
	})
	if err != nil {
		t.Fatal(err)
	}
	composer, err := json.Marshal(map[string]any{"packages": map[string]any{"acme/greeting": map[string]any{"1.0.0": map[string]any{
		"name": "acme/greeting", "version": "1.0.0", "autoload": map[string]any{"files": []string{"greeting.php"}},
		"dist": map[string]string{"type": "zip", "url": url + "/composer/greeting.zip"},
	}}}})
	if err != nil {
		t.Fatal(err)
	}
	const wheel = "greeting-1.0-py3-none-any.whl"
	const distribution = "A/AC/ACME/Greeting-1.0.tar.gz"
	contents := map[string][]byte{
		"/npm/greeting":                      packument,
		"/npm/greeting/-/greeting-1.0.0.tgz": nodeModule(t, string(text)),
		"/pypi/greeting/":                    fmt.Appendf(nil, `<a href="%s">%[1]s</a>`, wheel),
		"/pypi/greeting/" + wheel: zipped(t, map[string]string{
			"greeting.py": "text = 'hello'\n", "greeting-1.0.dist-info/METADATA": "Metadata-Version: 2.1\nName: greeting\nVersion: 1.0\n",
			"greeting-1.0.dist-info/WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n", "greeting-1.0.dist-info/RECORD": "",
		}),
		"/composer/packages.json":                 composer,
		"/composer/greeting.zip":                  zipped(t, map[string]string{"greeting/greeting.php": "<?php function greeting() { return 'hello'; }"}),
		"/cpan/modules/02packages.details.txt.gz": compressed(t, "File: 02packages.details.txt\nLine-Count: 1\n\nGreeting 1.0 "+distribution+"\n"),
		"/cpan/authors/id/" + distribution:        perlModule(t),
	}
	maps.Copy(contents, gems(t))
	maps.Copy(contents, modules(t))
	if slices.Contains(languages, "java") {
		mux.Handle("/maven/", http.StripPrefix("/maven/", http.FileServer(http.Dir(mavenRepository(t, c)))))
	}
	mux.Handle("/", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		content, ok := contents[r.URL.Path]
		if !ok {
			http.NotFound(w, r)
			return
		}
		switch {
		case strings.HasPrefix(r.URL.Path, "/pypi/") && strings.HasSuffix(r.URL.Path, "/"):
			w.Header().Set("Content-Type", "text/html")
		case r.URL.Path == "/npm/greeting":
			w.Header().Set("Content-Type", "application/json")
		}
		_, _ = w.Write(content)
	}))
	return url
}

// serve starts a server on the cluster's machine. Builds can reach the server even if the machine
// has no network.
func serve(t *testing.T, c *kit.Cluster, handler http.Handler) (url string) {
	t.Helper()
	var listener net.Listener
	err := c.Do(func() (err error) {
		listener, err = net.Listen("tcp", net.JoinHostPort(c.Address.String(), "0"))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewUnstartedServer(handler)
	server.Listener.Close()
	server.Listener = listener
	server.Start()
	t.Cleanup(server.Close)
	return server.URL
}

func tarball(t *testing.T, files map[string]string) []byte {
	t.Helper()
	return compressed(t, archived(t, files))
}

func archived(t *testing.T, files map[string]string) string {
	t.Helper()
	var content bytes.Buffer
	writer := tar.NewWriter(&content)
	for name, text := range files {
		err := writer.WriteHeader(&tar.Header{Name: name, Mode: 0o644, Size: int64(len(text))})
		if err == nil {
			_, err = writer.Write([]byte(text))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := writer.Close(); err != nil {
		t.Fatal(err)
	}
	return content.String()
}

func compressed(t *testing.T, text string) []byte {
	t.Helper()
	var content bytes.Buffer
	writer := gzip.NewWriter(&content)
	if _, err := writer.Write([]byte(text)); err != nil {
		t.Fatal(err)
	}
	if err := writer.Close(); err != nil {
		t.Fatal(err)
	}
	return content.Bytes()
}

func zipped(t *testing.T, files map[string]string) []byte {
	t.Helper()
	var content bytes.Buffer
	writer := zip.NewWriter(&content)
	for name, text := range files {
		file, err := writer.Create(name)
		if err == nil {
			_, err = file.Write([]byte(text))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := writer.Close(); err != nil {
		t.Fatal(err)
	}
	return content.Bytes()
}

// source is an application that requires the mirror's greeting package.
type source struct {
	// variable is the build environment variable for the mirror. Its value is the mirror's URL with
	// path appended.
	variable, path string
	files          map[string]string
	// check is a command that fails in the application's image if the package is missing.
	check string
}

var sources = map[string]source{
	"nodejs": {
		"NPM_MIRROR", "/npm", map[string]string{
			"package.json": `{"name": "app", "version": "1.0.0", "main": "app.js", "dependencies": {"greeting": "^1"}, "scripts": {"build": "node build.js"}}`,
			"build.js":     `require("fs").writeFileSync("built", require("greeting"))`, "app.js": "",
		},
		`test "$(cat built)" = hello && test "$(node -p 'require("greeting")')" = hello`,
	},
	"python": {
		"PIP_INDEX_URL", "/pypi/", map[string]string{"requirements.txt": "greeting==1.0\n", "app.py": ""},
		`test "$(python3 -c 'import greeting; print(greeting.text)')" = hello`,
	},
	"golang": {
		"GOPROXY", "/go", map[string]string{
			"go.mod":  "module app\n\ngo 1.19\n\nrequire example.com/greeting v1.0.0\n",
			"main.go": "package main\n\nimport \"example.com/greeting\"\n\nfunc main() { print(greeting.Text) }\n",
		},
		`test "$(/opt/app-root/program 2>&1)" = hello`,
	},
	"php": {
		"COMPOSER_MIRROR", "/composer", map[string]string{"composer.json": `{"require": {"acme/greeting": "^1"}}`},
		`test "$(php -r 'require "vendor/autoload.php"; echo greeting();')" = hello`,
	},
	"ruby": {
		"RUBYGEM_MIRROR", "/gems", map[string]string{"Gemfile": "source 'https://rubygems.org'\ngem 'greeting', '~> 1.0'\n", "config.ru": ""},
		`test "$(bundle exec ruby -e 'require "greeting"; print Greeting.text')" = hello`,
	},
	"java": {
		"MAVEN_MIRROR_URL", "/maven", map[string]string{"pom.xml": project, "src/main/java/App.java": program},
		`test "$(java -cp "/deployments/app.jar:$(find $HOME/.m2 -name 'commons-lang3-3*.jar')" App)" = Hello`,
	},
	"yarn": {
		"NPM_MIRROR", "/npm", map[string]string{
			"package.json": `{"name": "app", "version": "1.0.0", "main": "app.js", "dependencies": {"greeting": "^1"}}`, "app.js": "",
			"yarn.lock": "# yarn lockfile v1\n\n\ngreeting@^1:\n  version \"1.0.0\"\n  resolved \"https://registry.yarnpkg.com/greeting/-/greeting-1.0.0.tgz\"\n",
		},
		`test "$(node -p 'require("greeting")')" = hello && test -e node_modules/.yarn-integrity`,
	},
	"perl": {
		"CPAN_MIRROR", "/cpan", map[string]string{"cpanfile": "requires 'Greeting';\n"},
		`test "$(perl -MGreeting -e 'print Greeting::text()')" = hello`,
	},
}

func TestBuilderInstallsPackagesOfMirror(t *testing.T) {
	c := kit.Shared(t)
	languages := selected([]string{"nodejs", "yarn", "python", "golang", "php", "perl", "ruby", "java"}, []string{"nodejs", "yarn", "python", "golang"})
	builders := map[string]string{"yarn": "nodejs"}
	for _, language := range languages {
		c.BuildSample(cmp.Or(builders[language], language), "")
	}
	url := mirror(t, c, languages)
	variables := map[string]string{
		"PIP_TRUSTED_HOST": strings.Split(strings.TrimPrefix(url, "http://"), ":")[0],
		"GOFLAGS":          "-mod=mod", "GOSUMDB": "off", // the source contains no go.sum
	}
	for _, language := range languages {
		variables[sources[language].variable] = url + sources[language].path
	}
	setBuildDefaults(t, c, variables)
	for _, language := range languages {
		dir := t.TempDir()
		for name, text := range sources[language].files {
			if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755); err != nil {
				t.Fatal(err)
			}
			write(t, filepath.Join(dir, name), text)
		}
		name := language + "-packages"
		c.OC("new-build", "--name="+name, "--binary", "--image-stream=openshift/"+cmp.Or(builders[language], language))
		c.OC("set", "build-hook", "bc/"+name, "--post-commit", "--script", sources[language].check)
		c.OC("start-build", name, "--from-dir="+dir, "--wait")
	}
}

// The catalog's templates build the examples that require no package and serve them.
func TestBuilderServesItsExample(t *testing.T) {
	c := kit.Shared(t)
	for _, name := range selected([]string{"nginx", "httpd", "php", "perl", "ruby", "java"}, []string{"nginx"}) {
		c.BuildSample(name, "")
		source := emptyRepository(t, c)
		source.add(filepath.Join("examples", name), c.RepositoryFile("examples", name))
		source.commit("an example")
		template, host := name+"-example", "APPLICATION_DOMAIN"
		if name == "java" {
			template, host = "openjdk-web-basic-s2i", "HOSTNAME_HTTP"
		}
		c.OC("new-app", template, "-p", "SOURCE_REPOSITORY_URL="+source.url, "-p", "SOURCE_REPOSITORY_REF=main", "-p", host+"="+name+".example.com")
		c.WaitVisit("http://"+name+".example.com/", "<h1>Hello from ")
	}
}
