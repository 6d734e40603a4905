package registry

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/distribution/distribution/v3/registry/storage/driver"
	"golang.org/x/sys/unix"

	"github.com/slipway-platform/slipway/internal/diskspace"
)

// project starts a server that serves the shop project's uploads with a guard.
func project(t *testing.T, quota int64, reserve diskspace.Reserve, dir string) (*server, *testRegistry, *httptest.Server) {
	t.Helper()
	g := testRegistryOn(t, Directory(dir, false))
	s := &server{Registry: &Registry{}, uploads: newUploads(), blobs: newSources(), guard: &guard{
		dir: dir, reserve: reserve, usage: newUsage(), quota: func(string) int64 { return quota },
	}}
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { s.upload(w, r, g.store, "shop") }))
	t.Cleanup(front.Close)
	return s, g, front
}

// send uploads a blob in one part and returns the status and the body of the last response.
func send(t *testing.T, front *httptest.Server, size int, chunked bool) (int, string) {
	t.Helper()
	resp, err := http.Post(front.URL+"/v2/shop/app/blobs/uploads/", "", nil)
	if err != nil {
		t.Fatal(err)
	}
	body, _ := io.ReadAll(resp.Body)
	resp.Body.Close()
	if resp.StatusCode != http.StatusAccepted {
		return resp.StatusCode, string(body)
	}
	at, err := resp.Location()
	if err != nil {
		t.Fatal(err)
	}
	var content io.Reader = bytes.NewReader(make([]byte, size))
	if chunked {
		content = io.MultiReader(content) // hides the content's length
	}
	request, err := http.NewRequest(http.MethodPatch, at.String(), content)
	if err != nil {
		t.Fatal(err)
	}
	if resp, err = http.DefaultClient.Do(request); err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, _ = io.ReadAll(resp.Body)
	return resp.StatusCode, string(body)
}

func TestUploadsCannotExceedQuotaOfProject(t *testing.T) {
	for name, chunked := range map[string]bool{"announced": false, "not announced": true} {
		s, g, front := project(t, 1<<20, diskspace.Reserve{}, t.TempDir())
		if status, body := send(t, front, 500<<10, chunked); status != http.StatusAccepted {
			t.Fatalf("%s: an upload within the quota: %d %s", name, status, body)
		}
		status, body := send(t, front, 700<<10, chunked)
		if status != http.StatusForbidden || !strings.Contains(body, `"DENIED"`) || !strings.Contains(body, QuotaAnnotation) || !strings.Contains(body, `project \"shop\"`) {
			t.Errorf("%s: an upload over the quota: %d %s", name, status, body)
		}
		if remaining := g.uploadDirs(t); len(remaining) != 1 {
			t.Errorf("%s: %d uploads are on the disk, want only the allowed one", name, len(remaining))
		}
		s.guard.usage.forget("shop") // the next use counts the content again
		if status, body := send(t, front, 400<<10, chunked); status != http.StatusAccepted {
			t.Errorf("%s: an upload within the remaining quota: %d %s", name, status, body)
		}
	}
}

func TestEmptyUploadsCountAgainstQuota(t *testing.T) {
	_, _, front := project(t, 20*entryBytes, diskspace.Reserve{}, t.TempDir())
	for n := range 100 {
		resp, err := http.Post(front.URL+"/v2/shop/app/blobs/uploads/", "", nil)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode == http.StatusForbidden {
			if n < 10 {
				t.Errorf("upload %d is rejected", n)
			}
			return
		}
	}
	t.Error("100 empty uploads were accepted")
}

func TestUploadsCannotUseReserveOfDisk(t *testing.T) {
	dir := t.TempDir()
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size=8m"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(dir, unix.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	s, _, front := project(t, Unlimited, diskspace.Reserve{Share: 0.5}, dir)
	if status, body := send(t, front, 2<<20, true); status != http.StatusAccepted {
		t.Fatalf("the first upload: %d %s", status, body)
	}
	status, body := send(t, front, 5<<20, true)
	if status != http.StatusInsufficientStorage || !strings.Contains(body, `"DENIED"`) || !strings.Contains(body, "slipway.registry.reserve") {
		t.Errorf("an upload that needs the reserve: %d %s", status, body)
	}
	if note := s.diskNote(); note != "" {
		t.Errorf("after the rejected upload was removed: %s", note)
	}
	if err := os.WriteFile(filepath.Join(dir, "filler"), make([]byte, 3<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	if note := s.diskNote(); !strings.Contains(note, "pushes are rejected") {
		t.Errorf("the status is %q", note)
	}
	if status, body := send(t, front, 1, true); status != http.StatusInsufficientStorage {
		t.Errorf("an upload to a full disk: %d %s", status, body)
	}
}

func TestBlobsOfProjectAreCountedOnce(t *testing.T) {
	g := newTestRegistry(t)
	shared := g.layer()
	g.push("shop/app", shared, g.layer())
	once, err := g.bytesOf(t.Context(), "shop")
	if err != nil {
		t.Fatal(err)
	}
	g.push("shop/other", shared)
	twice, err := g.bytesOf(t.Context(), "shop")
	if err != nil {
		t.Fatal(err)
	}
	// The first image has four blobs; the second adds a manifest and a configuration.
	if once < 4*entryBytes || once > 4*entryBytes+4<<10 || twice-once < 2*entryBytes || twice-once > 2*entryBytes+2<<10 {
		t.Errorf("counted %d bytes, then %d", once, twice)
	}
	if none, err := g.bytesOf(t.Context(), "nobody"); none != 0 || err != nil {
		t.Errorf("a project without repositories has %d bytes, %v", none, err)
	}
}

func TestAbandonedUploadsAreRemovedWithinHour(t *testing.T) {
	dir := t.TempDir()
	s, g, front := project(t, Unlimited, diskspace.Reserve{}, dir)
	for range 2 {
		if status, body := send(t, front, 100, false); status != http.StatusAccepted {
			t.Fatalf("%d %s", status, body)
		}
	}
	age(t, dir, 50*time.Minute)
	current, stale := g.uploadDirs(t)[0], g.uploadDirs(t)[1]
	s.uploads.forget(time.Now())
	s.uploads.touch(path.Base(current))
	if err := s.removeAbandoned(t.Context(), g.store); err != nil {
		t.Fatal(err)
	}
	if remaining := g.uploadDirs(t); len(remaining) != 1 || remaining[0] != current {
		t.Errorf("after removing %q, %q are left", stale, remaining)
	}
}

// age makes all files in a directory older.
func age(t *testing.T, dir string, by time.Duration) {
	t.Helper()
	then := time.Now().Add(-by)
	err := filepath.Walk(dir, func(file string, _ os.FileInfo, err error) error {
		if err == nil {
			err = os.Chtimes(file, then, then)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// uploadDirs returns the upload directories on the disk.
func (g *testRegistry) uploadDirs(t *testing.T) (dirs []string) {
	t.Helper()
	err := g.driver.Walk(t.Context(), repositoriesDir, func(file driver.FileInfo) error {
		if file.IsDir() && path.Base(path.Dir(file.Path())) == uploadsDir {
			dirs = append(dirs, file.Path())
		}
		return nil
	})
	if err != nil && !missing(err) {
		t.Fatal(err)
	}
	return dirs
}

func TestQuotasAreParsed(t *testing.T) {
	for text, want := range map[string]int64{"50Gi": 50 << 30, "none": Unlimited, "0": 0} {
		if got, err := ParseQuota(text); got != want || err != nil {
			t.Errorf("%q is %d, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "-1", "much"} {
		if _, err := ParseQuota(text); err == nil {
			t.Errorf("%q is accepted as a quota", text)
		}
	}
}
