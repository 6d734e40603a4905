package s3

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/distribution/distribution/v3/registry/storage/driver"
	"github.com/johannesboyne/gofakes3"
	"github.com/johannesboyne/gofakes3/backend/s3mem"
)

// serve starts a fake S3 server with an empty bucket and returns the settings that connect to it.
func serve(t *testing.T) map[string]any {
	t.Helper()
	backend := s3mem.New()
	if err := backend.CreateBucket("images"); err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(gofakes3.New(backend).Server())
	t.Cleanup(server.Close)
	return map[string]any{"regionendpoint": server.URL, "bucket": "images", "accesskey": "ann", "secretkey": "secret"}
}

// open returns a driver with the given parameters.
func open(t *testing.T, parameters map[string]any) driver.StorageDriver {
	t.Helper()
	driver, err := Factory{}.Create(t.Context(), parameters)
	if err != nil {
		t.Fatal(err)
	}
	return driver
}

// with adds a key to parameters and returns them.
func with(parameters map[string]any, key string, value any) map[string]any {
	parameters[key] = value
	return parameters
}

func TestFileHasWrittenContent(t *testing.T) {
	files := open(t, with(serve(t), "chunksize", minPart))
	content := bytes.Repeat([]byte("0123456789abcdef"), (2*minPart+minPart/2)/16)
	// The pieces end within a part, at its end, and after its end.
	for _, test := range []struct {
		pieces []int
		closed bool // true if the connection is closed after each response
	}{
		{nil, false}, {[]int{len(content)}, false}, {[]int{1, len(content) - 1}, false}, {[]int{minPart / 2, minPart, minPart}, false},
		{[]int{minPart, minPart + minPart/2}, true}, {[]int{2 * minPart, minPart / 2}, true},
	} {
		want := content
		if test.pieces == nil {
			want = nil
		}
		if got := writeFile(t, files, want, test.pieces, test.closed); sum(got) != sum(want) {
			t.Errorf("%+v: wrote %d bytes, read %d different ones", test, len(want), len(got))
		}
	}
}

// writeFile writes content in pieces, and returns the content that can be read afterwards. If
// closed is true, it uses a new writer for each piece.
func writeFile(t *testing.T, files driver.StorageDriver, content []byte, pieces []int, closed bool) []byte {
	t.Helper()
	const path = "/uploads/data"
	writer, err := files.Writer(t.Context(), path, false)
	for i, size := 0, 0; i < len(pieces) && err == nil; i++ {
		if closed {
			if err = writer.Close(); err == nil {
				writer, err = files.Writer(t.Context(), path, true)
			}
		}
		if err == nil {
			_, err = writer.Write(content[size : size+pieces[i]])
			size += pieces[i]
		}
		if err == nil && writer.Size() != int64(size) {
			t.Errorf("size %d after %d bytes", writer.Size(), size)
		}
	}
	if err == nil {
		err = errors.Join(writer.Commit(t.Context()), writer.Close())
	}
	if err != nil {
		t.Fatal(err)
	}
	got, err := files.GetContent(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

func TestSettingsAreChecked(t *testing.T) {
	for _, test := range []struct {
		parameters map[string]any
		want       []string // parts of the error
	}{
		{map[string]any{"bucket": "b", "region": "eu-west-1"}, nil},
		{map[string]any{"bucket": "b", "region": "eu-west-1", "encrypt": "true", "keyid": "k", "storageclass": "standard_ia", "chunksize": 6 << 20, "loglevel": false}, nil},
		{map[string]any{"bucket": "b", "regionendpoint": "s3.example.com:9000", "secure": false, "forcepathstyle": nil}, nil},
		{map[string]any{}, []string{"bucket is missing", "region is missing"}},
		{map[string]any{"bucket": "b", "region": "atlantis-1"}, []string{"region is unknown"}},
		{map[string]any{"bucket": "b", "region": "eu-west-1", "acesskey": "a"}, []string{"acesskey is unknown; use accelerate, accesskey,"}},
		{map[string]any{"bucket": "b", "region": "eu-west-1", "accesskey": "a"}, []string{"accesskey and secretkey must be set together"}},
		{map[string]any{"bucket": "b", "region": "eu-west-1", "chunksize": "1"}, []string{`chunksize is "1"; use a number from 5242880`}},
		{map[string]any{"bucket": "b", "region": "eu-west-1", "secure": "perhaps"}, []string{`secure is "perhaps"; use true or false`}},
		{map[string]any{"bucket": "b", "region": "eu-west-1", "storageclass": "warm"}, []string{`storageclass is "WARM"; use one of NONE,`}},
		{map[string]any{"bucket": "b", "region": "eu-west-1", "keyid": "k"}, []string{"keyid needs encrypt"}},
		{map[string]any{"bucket": "b", "region": "eu-west-1", "v4auth": false}, []string{"v4auth: false needs a regionendpoint", "v4auth: false needs accesskey"}},
		{map[string]any{"bucket": "b", "region": "eu-west-1", "loglevel": "debug"}, []string{`loglevel is "debug"`}},
		{map[string]any{"bucket": "b", "region": "eu-west-1", "redirectendpoint": "https://images.example.com/v1"}, []string{"redirectendpoint must be a URL without a path"}},
		{map[string]any{"bucket": "b", "regionendpoint": "https://s3.example.com/store"}, []string{"regionendpoint must be a URL without a path"}},
		{map[string]any{"bucket": "b", "regionendpoint": "https://s3.example.com", "accelerate": true}, []string{"remove regionendpoint"}},
	} {
		err := Check(test.parameters)
		if (err == nil) != (len(test.want) == 0) {
			t.Errorf("%v: error %v, want %q", test.parameters, err, test.want)
			continue
		}
		for _, want := range test.want {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%v: error %v lacks %q", test.parameters, err, want)
			}
		}
	}
}

func TestURLsPointToConfiguredServer(t *testing.T) {
	const file = "/docker/data"
	for _, test := range []struct {
		parameters map[string]any
		want       string // scheme, host and path
	}{
		{map[string]any{"region": "eu-west-1"}, "https://images.s3.eu-west-1.amazonaws.com/docker/data"},
		{map[string]any{"region": "eu-west-1", "secure": false}, "http://images.s3.eu-west-1.amazonaws.com/docker/data"},
		{map[string]any{"region": "eu-west-1", "forcepathstyle": true}, "https://s3.eu-west-1.amazonaws.com/images/docker/data"},
		{map[string]any{"region": "eu-west-1", "usedualstack": true}, "https://images.s3.dualstack.eu-west-1.amazonaws.com/docker/data"},
		{map[string]any{"region": "us-east-1", "usefipsendpoint": true}, "https://images.s3-fips.us-east-1.amazonaws.com/docker/data"},
		{map[string]any{"region": "us-east-1", "accelerate": true}, "https://images.s3-accelerate.amazonaws.com/docker/data"},
		{map[string]any{"regionendpoint": "https://s3.example.com"}, "https://s3.example.com/images/docker/data"},
		{map[string]any{"regionendpoint": "https://s3.example.com", "forcepathstyle": false}, "https://images.s3.example.com/docker/data"},
		{map[string]any{"regionendpoint": "s3.example.com:9000", "secure": false, "rootdirectory": "/images/"}, "http://s3.example.com:9000/images/images/docker/data"},
		{map[string]any{"regionendpoint": "http://10.0.0.1", "v4auth": false}, "http://10.0.0.1/images/docker/data"},
		{map[string]any{"regionendpoint": "http://10.0.0.1", "redirectendpoint": "https://cdn.example.com"}, "https://cdn.example.com/images/docker/data"},
		{map[string]any{"region": "eu-west-1", "redirectendpoint": "https://cdn.example.com"}, "https://cdn.example.com/docker/data"},
		{map[string]any{"regionendpoint": "http://10.0.0.1", "redirectendpoint": "https://cdn.example.com", "v4auth": false}, "https://cdn.example.com/images/docker/data"},
	} {
		parameters := with(with(with(test.parameters, "bucket", "images"), "accesskey", "ann"), "secretkey", "geheim")
		for _, method := range []string{http.MethodGet, http.MethodHead} {
			got, err := open(t, parameters).RedirectURL(httptest.NewRequest(method, "/", nil), file)
			if err != nil {
				t.Fatal(err)
			}
			address, query, _ := strings.Cut(got, "?")
			if address != test.want || !strings.Contains(query, "Signature=") || strings.Contains(query, "geheim") {
				t.Errorf("%v: %s refers to %s, want %s", test.parameters, method, got, test.want)
			}
		}
		if got, err := open(t, parameters).RedirectURL(httptest.NewRequest(http.MethodPut, "/", nil), file); got != "" || err != nil {
			t.Errorf("%v: PUT is redirected to %q, %v", test.parameters, got, err)
		}
	}
}

func TestFilesAreListed(t *testing.T) {
	files := open(t, with(serve(t), "rootdirectory", "/registry"))
	for _, path := range []string{"/a/b/c", "/a/b-c/d", "/a/b.d", "/a/x/y/z", "/ab/c", "/top"} {
		if err := files.PutContent(t.Context(), path, []byte(path)); err != nil {
			t.Fatal(err)
		}
	}
	for dir, want := range map[string]string{"/": "/a /ab /top", "/a": "/a/b /a/b-c /a/b.d /a/x", "/a/x": "/a/x/y"} {
		got, err := files.List(t.Context(), dir)
		if slices.Sort(got); err != nil || strings.Join(got, " ") != want {
			t.Errorf("list of %s: %q, %v, want %s", dir, got, err, want)
		}
	}
	for _, test := range []struct{ from, skip, stop, want string }{
		{"/a", "", "", "/a/b-c/ /a/b-c/d /a/b.d /a/b/ /a/b/c /a/x/ /a/x/y/ /a/x/y/z"},
		{"/a", "/a/x", "", "/a/b-c/ /a/b-c/d /a/b.d /a/b/ /a/b/c /a/x/"},
		{"/a", "", "/a/b", "/a/b-c/ /a/b-c/d /a/b.d /a/b/"},
		{"/", "/a", "", "/a/ /ab/ /ab/c /top"},
		{"/none", "", "", ""},
	} {
		var got []string
		err := files.Walk(t.Context(), test.from, func(info driver.FileInfo) error {
			path := info.Path()
			if info.IsDir() {
				path += "/"
			} else if info.Size() != int64(len(info.Path())) || info.ModTime().IsZero() {
				t.Errorf("%s has %d bytes of %s", path, info.Size(), info.ModTime())
			}
			got = append(got, path)
			switch info.Path() {
			case test.skip:
				return driver.ErrSkipDir
			case test.stop:
				return driver.ErrFilledBuffer
			}
			return nil
		})
		if err != nil || strings.Join(got, " ") != test.want {
			t.Errorf("walk %+v: %q, %v", test, got, err)
		}
	}
	failure := errors.New("no more")
	if err := files.Walk(t.Context(), "/", func(driver.FileInfo) error { return failure }); err == nil || !strings.Contains(err.Error(), failure.Error()) {
		t.Errorf("failing walk: %v", err)
	}
	canceled, end := context.WithCancel(t.Context())
	end()
	if _, err := files.List(canceled, "/"); err == nil || !strings.Contains(err.Error(), context.Canceled.Error()) {
		t.Errorf("list with a canceled context: %v", err)
	}
}

func TestFilesAreRemovedAndMoved(t *testing.T) {
	files := open(t, serve(t))
	exists := func(path string) bool {
		t.Helper()
		_, err := files.Stat(t.Context(), path)
		if err != nil && !missing(err) {
			t.Fatal(err)
		}
		return err == nil
	}
	for _, path := range []string{"/a/b", "/a/c/d", "/ab", "/old"} {
		if err := files.PutContent(t.Context(), path, []byte("x")); err != nil {
			t.Fatal(err)
		}
	}
	writer, err := files.Writer(t.Context(), "/a/upload/data", false)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := writer.Write(make([]byte, defaultPart)); err != nil {
		t.Fatal(err)
	}
	if err := files.Delete(t.Context(), "/a/upload"); err != nil {
		t.Errorf("remove a directory with only incomplete files: %v", err)
	}
	if _, err := files.Writer(t.Context(), "/a/upload/data", true); !missing(err) {
		t.Errorf("continue a removed upload: %v", err)
	}
	if err := files.Delete(t.Context(), "/a"); err != nil || exists("/a") || exists("/a/b") || !exists("/ab") {
		t.Errorf("remove /a: %v", err)
	}
	if err := files.Delete(t.Context(), "/ab"); err != nil || exists("/ab") {
		t.Errorf("remove /ab: %v", err)
	}
	if err := files.Delete(t.Context(), "/ab"); !missing(err) {
		t.Errorf("remove a missing file: %v", err)
	}
	if err := files.Move(t.Context(), "/old", "/new"); err != nil || exists("/old") || !exists("/new") {
		t.Errorf("move: %v", err)
	}
	if err := files.Move(t.Context(), "/old", "/new"); !missing(err) || !exists("/new") {
		t.Errorf("move a missing file: %v", err)
	}
}

func TestRequestToUnavailableServerFailsAfterAFewAttempts(t *testing.T) {
	var requests atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		requests.Add(1)
		w.WriteHeader(http.StatusServiceUnavailable)
	}))
	defer server.Close()
	files := open(t, map[string]any{"regionendpoint": server.URL, "bucket": "images", "accesskey": "ann", "secretkey": "secret"})
	if _, err := files.GetContent(t.Context(), "/file"); err == nil {
		t.Error("an unavailable server returns a file")
	}
	if got := requests.Load(); got != attempts {
		t.Errorf("the client sent %d requests, want %d", got, attempts)
	}
}
