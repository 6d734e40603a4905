package application

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/slipway-platform/slipway/test/kit"
)

// mirror serves one package, greeting, as the registries of npm and of Python do.
func mirror(t *testing.T, c *kit.Cluster) (url string) {
	t.Helper()
	listener, err := net.Listen("tcp", net.JoinHostPort(c.Gateway.String(), "0"))
	if err != nil {
		t.Fatal(err)
	}
	url = "http://" + listener.Addr().String()
	manifest := map[string]any{"name": "greeting", "version": "1.0.0", "main": "index.js"}
	text, err := json.Marshal(manifest)
	if err != nil {
		t.Fatal(err)
	}
	manifest["dist"] = map[string]string{"tarball": url + "/npm/greeting-1.0.0.tgz"}
	packument, err := json.Marshal(map[string]any{
		"name": "greeting", "dist-tags": map[string]string{"latest": "1.0.0"}, "versions": map[string]any{"1.0.0": manifest},
	})
	if err != nil {
		t.Fatal(err)
	}
	const wheel = "greeting-1.0-py3-none-any.whl"
	contents := map[string][]byte{
		"/npm/greeting":           packument,
		"/npm/greeting-1.0.0.tgz": tarball(t, map[string]string{"package/package.json": string(text), "package/index.js": `module.exports = "hello"`}),
		"/pypi/greeting/":         fmt.Appendf(nil, `<a href="%s">%[1]s</a>`, wheel),
		"/pypi/greeting/" + wheel: zipped(t, map[string]string{
			"greeting.py": "text = 'hello'\n", "greeting-1.0.dist-info/METADATA": "Metadata-Version: 2.1\nName: greeting\nVersion: 1.0\n",
			"greeting-1.0.dist-info/WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n", "greeting-1.0.dist-info/RECORD": "",
		}),
	}
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
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
	server.Listener.Close()
	server.Listener = listener
	server.Start()
	t.Cleanup(server.Close)
	return url
}

func tarball(t *testing.T, files map[string]string) []byte {
	t.Helper()
	var content bytes.Buffer
	compressor := gzip.NewWriter(&content)
	writer := tar.NewWriter(compressor)
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
	if err := compressor.Close(); err != nil {
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

func TestBuilderInstallsPackagesOfMirror(t *testing.T) {
	c := kit.Shared(t)
	url := mirror(t, c)
	host := strings.Split(strings.TrimPrefix(url, "http://"), ":")[0]
	for language, tt := range map[string]struct {
		variables []string
		files     map[string]string
		// check fails in the image of the application if the package is missing.
		check string
	}{
		"nodejs": {
			[]string{"NPM_MIRROR=" + url + "/npm"},
			map[string]string{
				"package.json": `{"name": "app", "version": "1.0.0", "main": "app.js", "dependencies": {"greeting": "^1"}, "scripts": {"build": "node build.js"}}`,
				"build.js":     `require("fs").writeFileSync("built", require("greeting"))`, "app.js": "",
			},
			`test "$(cat built)" = hello && test "$(node -p 'require("greeting")')" = hello`,
		},
		"python": {
			[]string{"PIP_INDEX_URL=" + url + "/pypi/", "PIP_TRUSTED_HOST=" + host},
			map[string]string{"requirements.txt": "greeting==1.0\n", "app.py": ""},
			`test "$(python3 -c 'import greeting; print(greeting.text)')" = hello`,
		},
	} {
		c.BuildSample(language, "")
		dir := t.TempDir()
		for name, text := range tt.files {
			write(t, dir+"/"+name, text)
		}
		name := language + "-packages"
		arguments := []string{"new-build", "--name=" + name, "--binary", "--image-stream=openshift/" + language}
		for _, variable := range tt.variables {
			arguments = append(arguments, "--env="+variable)
		}
		c.OC(arguments...)
		c.OC("set", "build-hook", "bc/"+name, "--post-commit", "--script", tt.check)
		c.OC("start-build", name, "--from-dir="+dir, "--wait")
	}
}
