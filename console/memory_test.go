package console

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"runtime"
	"sync"
	"testing"
	"testing/fstest"
)

// maxServingMemory is the maximum memory of the console's server, in bytes, while it serves 100
// browsers at the same time.
const maxServingMemory = 15 << 20

// stalled is a browser that has requested a file but does not read it until release is closed.
type stalled struct {
	*httptest.ResponseRecorder
	arrived *sync.WaitGroup
	release chan struct{}
	once    sync.Once
}

func (s *stalled) Write(content []byte) (int, error) {
	s.once.Do(s.arrived.Done)
	<-s.release
	return len(content), nil
}

func liveMemory() uint64 {
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return stats.HeapAlloc + stats.StackInuse
}

func TestServerNeedsLittleMemory(t *testing.T) {
	f := newFixture(t)
	files := fstest.MapFS{"assets/large.js.br": {Data: bytes.Repeat([]byte("x"), 1<<20)}}
	before := liveMemory()
	f.content = files
	var err error
	if f.files, err = readFiles(files); err != nil {
		t.Fatal(err)
	}
	var arrived, ended sync.WaitGroup
	release := make(chan struct{})
	for range 100 {
		arrived.Add(1)
		ended.Go(func() {
			r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, public+"/console/assets/large.js", nil)
			r.Header.Set("Accept-Encoding", "br")
			f.chain.ServeHTTP(&stalled{ResponseRecorder: httptest.NewRecorder(), arrived: &arrived, release: release}, r)
		})
	}
	arrived.Wait()
	used := int64(liveMemory()) - int64(before)
	close(release)
	ended.Wait()
	t.Logf("the server needs %d KiB", used>>10)
	if used > maxServingMemory {
		t.Errorf("the server needs %d bytes, more than %d", used, maxServingMemory)
	}
}
