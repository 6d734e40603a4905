package local

import (
	"path/filepath"
	"testing"

	"github.com/container-storage-interface/spec/lib/go/csi"
)

// FuzzRequest checks that a volume's size is in the requested range, and that no handle refers to a
// path outside the driver's directory.
func FuzzRequest(f *testing.F) {
	f.Add("1Gi", "node/pvc-1", int64(1<<30), int64(2<<30), "thin")
	f.Add("9223372036854775807Ti", "../../etc/passwd", int64(9223372036854775807), int64(0), "thick")
	f.Add("-1", "a/../b", int64(-1), int64(-1), "")
	f.Add("1kKi", "", int64(0), int64(1), "x")
	f.Fuzz(func(t *testing.T, size, handle string, required, limit int64, kind string) {
		if bytes, err := parseSize(size); err == nil && (bytes <= 0 || bytes > maxSize) {
			t.Errorf("%q: got %d bytes", size, bytes)
		}
		capacity := &csi.CapacityRange{RequiredBytes: required, LimitBytes: limit}
		if bytes, err := sizeIn(capacity, 1<<20); err == nil && (bytes <= 0 || !within(bytes, capacity)) {
			t.Errorf("range %d to %d: got %d", required, limit, bytes)
		}
		_, _ = parseParameters(map[string]string{allocationKey: kind}, map[string]string{size: kind})
		if name := fileName(handle); !filepath.IsLocal(name) || filepath.Base(name) != name {
			t.Errorf("handle %q: got file %q", handle, name)
		}
	})
}
