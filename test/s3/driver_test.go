package s3

import (
	"bytes"
	"flag"
	"maps"
	"os"
	"path/filepath"
	"testing"

	"github.com/distribution/distribution/v3/registry/storage/driver"
	"github.com/distribution/distribution/v3/registry/storage/driver/testsuites"
	"golang.org/x/sys/unix"

	"github.com/slipway-platform/slipway/internal/eventually"
	storage "github.com/slipway-platform/slipway/registry/s3"
)

// limit prevents distribution's tests from writing a 5 GiB file. It also limits this process's
// memory. The tests compare files of several megabytes with a library that would use gigabytes of
// memory to print a difference.
func limit(t *testing.T) {
	t.Helper()
	before := flag.Lookup("test.short").Value.String()
	var memory unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_AS, &memory); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = flag.Set("test.short", before)
		_ = unix.Setrlimit(unix.RLIMIT_AS, &memory)
	})
	if err := flag.Set("test.short", "true"); err != nil {
		t.Fatal(err)
	}
	if err := unix.Setrlimit(unix.RLIMIT_AS, &unix.Rlimit{Cur: 8 << 30, Max: memory.Max}); err != nil {
		t.Fatal(err)
	}
}

// open returns a function that creates drivers with additional settings. The drivers' bucket is
// created if it does not exist.
func open(t *testing.T) func(more map[string]any) (driver.StorageDriver, error) {
	t.Helper()
	program, err := filepath.Abs("../../bin/versitygw")
	if err != nil {
		t.Fatal(err)
	}
	s := serveAt(t, program, "127.0.0.1")
	return func(more map[string]any) (driver.StorageDriver, error) {
		parameters := map[string]any{"regionendpoint": "http://" + s.address, "bucket": bucket, "accesskey": accessKey, "secretkey": secretKey}
		maps.Copy(parameters, more)
		if err := os.MkdirAll(filepath.Join(s.dir, parameters["bucket"].(string)), 0o755); err != nil {
			return nil, err
		}
		driver, err := storage.Factory{}.Create(t.Context(), parameters)
		if err == nil {
			eventually.True(t, "the server responds", func() bool { _, err := driver.Stat(t.Context(), "/"); return err == nil })
		}
		return driver, err
	}
}

func TestDriverPassesSuiteOfDistribution(t *testing.T) {
	create := open(t)
	limit(t)
	for name, more := range map[string]map[string]any{
		"defaults": {},
		// These sizes are small, so that distribution's tests copy objects in parts.
		"small parts": {"chunksize": 5 << 20, "multipartcopychunksize": 5 << 20, "multipartcopythresholdsize": 16, "rootdirectory": "/registry", "bucket": "others"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel() // one of the suite's tests waits 15 seconds
			testsuites.Driver(t, func() (driver.StorageDriver, error) { return create(more) }, false)
		})
	}
}

// TestUploadContinuesAfterSmallPart uses a new writer for each piece. S3 requires that every part
// except the last is at least 5 MiB. Therefore, a writer that continues after a smaller part must
// first copy the existing content.
func TestUploadContinuesAfterSmallPart(t *testing.T) {
	create := open(t)
	const mebibyte = 1 << 20
	content := make([]byte, 23*mebibyte+1)
	for i := range content {
		content[i] = byte(i / 1000)
	}
	for name, more := range map[string]map[string]any{
		"copied whole":    {"chunksize": 5 * mebibyte},
		"copied in parts": {"chunksize": 5 * mebibyte, "multipartcopychunksize": 5 * mebibyte},
	} {
		t.Run(name, func(t *testing.T) {
			files, err := create(more)
			if err != nil {
				t.Fatal(err)
			}
			written := 0
			for _, size := range []int{12 * mebibyte, 1, 3 * mebibyte, 8 * mebibyte, 0} {
				writer, err := files.Writer(t.Context(), "/data", written > 0)
				if err == nil && writer.Size() != int64(written) {
					t.Errorf("the upload has %d bytes, want %d", writer.Size(), written)
				}
				if err == nil {
					_, err = writer.Write(content[written : written+size])
				}
				if written += size; err == nil && size == 0 {
					err = writer.Commit(t.Context())
				}
				if err == nil {
					err = writer.Close()
				}
				if err != nil {
					t.Fatal(err)
				}
			}
			if got, err := files.GetContent(t.Context(), "/data"); err != nil || !bytes.Equal(got, content) {
				t.Errorf("read %d other bytes, %v", len(got), err)
			}
		})
	}
}
