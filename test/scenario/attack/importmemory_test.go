package attack

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/slipway-platform/slipway/test/kit"
)

// greedy implements a registry whose repositories have many tags. Each tag has a different manifest
// and a configuration of almost 4 MiB. The manifests in the repository "bomb" consist of empty
// objects.
func greedy(w http.ResponseWriter, r *http.Request) {
	const size, tags = 4<<20 - 1024, 50
	config := func(tag string) []byte {
		return []byte(`{"os": "linux", "architecture": "amd64", "comment": "` + tag + strings.Repeat("c", size) + `"}`)
	}
	manifest := func(repository, tag string) []byte {
		if repository == "bomb" {
			return []byte(`{"schemaVersion": 2, "layers": [{}` + strings.Repeat(",{}", size/3) + `]}`)
		}
		sum := sha256.Sum256(config(tag))
		return fmt.Appendf(nil, `{"schemaVersion": 2, "mediaType": "application/vnd.oci.image.manifest.v1+json", "layers": [], "annotations": {"a": %q},
			"config": {"mediaType": "application/vnd.oci.image.config.v1+json", "digest": "sha256:%s", "size": %d}}`,
			strings.Repeat("m", size), hex.EncodeToString(sum[:]), len(config(tag)))
	}
	switch {
	case strings.HasSuffix(r.URL.Path, "/tags/list"):
		list := map[string][]string{}
		for n := range tags {
			list["tags"] = append(list["tags"], fmt.Sprint("v", n))
		}
		_ = json.NewEncoder(w).Encode(list)
	case strings.Contains(r.URL.Path, "/manifests/"):
		w.Header().Set("Content-Type", "application/vnd.oci.image.manifest.v1+json")
		_, _ = w.Write(manifest(path.Base(path.Dir(path.Dir(r.URL.Path))), path.Base(r.URL.Path)))
	case strings.Contains(r.URL.Path, "/blobs/"):
		for n := range tags {
			content := config(fmt.Sprint("v", n))
			if sum := sha256.Sum256(content); path.Base(r.URL.Path) == "sha256:"+hex.EncodeToString(sum[:]) {
				_, _ = w.Write(content)
				return
			}
		}
		http.NotFound(w, r)
	}
}

// anonymousMemory returns a process's anonymous memory, in MiB.
func anonymousMemory(t *testing.T, pid int) int {
	t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	match := regexp.MustCompile(`RssAnon:\s+(\d+) kB`).FindSubmatch(status)
	if match == nil {
		t.Fatalf("process %d has no memory", pid)
	}
	kib, err := strconv.Atoi(string(match[1]))
	if err != nil {
		t.Fatal(err)
	}
	return kib >> 10
}

// peakDuring returns the maximum growth of a process's memory while work runs, in MiB.
func peakDuring(t *testing.T, pid int, work func()) (growth int) {
	t.Helper()
	before := anonymousMemory(t, pid)
	done := make(chan struct{})
	go func() {
		defer close(done)
		work()
	}()
	for sample := time.NewTicker(20 * time.Millisecond); ; {
		growth = max(growth, anonymousMemory(t, pid)-before)
		select {
		case <-done:
			sample.Stop()
			return growth
		case <-sample.C:
		}
	}
}

// maxGrowth is the maximum amount, in MiB, by which a tenant's requests can increase the control
// plane's memory. Without the limits on imports, two imports add 530 MiB. With the limits, six add
// 80 MiB on an idle machine, but more on a busy one, where garbage is collected later.
const maxGrowth = 300

func TestHostileRegistryCannotExhaustMemory(t *testing.T) {
	s := tenants(t)
	var manifests atomic.Int64
	registry := s.distant(t, func(w http.ResponseWriter, r *http.Request) {
		if strings.Contains(r.URL.Path, "/manifests/") {
			manifests.Add(1)
		}
		greedy(w, r)
	})
	pid := s.Status().PID("control-plane")
	accomplice, other := s.User("mallet"), projectName(s.Namespace, "worse")
	accomplice.RequestProject(s.Cluster, other)
	for _, repository := range []string{"large", "bomb"} {
		manifests.Store(0)
		growth := peakDuring(t, pid, func() {
			var imports sync.WaitGroup
			for n := range 6 {
				user, project := s.mallory, s.evil
				if n%2 == 1 {
					user, project = accomplice, other
				}
				imports.Go(func() {
					// The limits may end an import with an error.
					_, _ = user.Try("POST", kit.GroupPath("image.openshift.io", project, "imagestreamimports"), fmt.Sprintf(
						`{apiVersion: image.openshift.io/v1, kind: ImageStreamImport, metadata: {name: greedy-%d}, spec: {import: true, repository:
							{from: {kind: DockerImage, name: "%s/%s"}, importPolicy: {insecure: true}, includeManifest: true}}}`, n, registry, repository))
				})
			}
			imports.Wait()
		})
		t.Logf("six imports of %s read %d manifests and grow the memory by %d MiB", repository, manifests.Load(), growth)
		if manifests.Load() == 0 {
			t.Errorf("no import of %s reached the registry", repository)
		}
		if growth > maxGrowth {
			t.Errorf("six imports of %s grow the memory of the control plane by %d MiB", repository, growth)
		}
	}
}
