package registry

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"

	"github.com/distribution/distribution/v3/configuration"
	"github.com/distribution/distribution/v3/registry/storage/driver"
	"github.com/distribution/distribution/v3/registry/storage/driver/factory"
	// Register the `filesystem` storage driver.
	_ "github.com/distribution/distribution/v3/registry/storage/driver/filesystem"

	"github.com/slipway-platform/slipway/registry/s3"
)

// registerS3 registers the `s3` storage driver in distribution's process-wide driver table.
var registerS3 = sync.OnceFunc(func() {
	for _, name := range s3.Names() {
		factory.Register(name, s3.Factory{})
	}
})

// ReadStorage returns the storage of the cluster's registry: the storage that the configuration
// file describes or, if file is empty, storage in the dir directory.
func ReadStorage(dir, file string, readOnly bool) (configuration.Storage, error) {
	if file == "" {
		return Directory(dir, readOnly), nil
	}
	settings, err := ReadConfiguration(file)
	if err != nil {
		return nil, err
	}
	if readOnly {
		settings.Storage["maintenance"] = rejectPushes()
	}
	return settings.Storage, nil
}

// OpenStorage opens the storage that a configuration file describes, to store files other than
// images.
func OpenStorage(ctx context.Context, file string) (driver.StorageDriver, error) {
	storage, err := ReadStorage("", file, false)
	if err != nil {
		return nil, err
	}
	registerS3()
	return factory.Create(ctx, storage.Type(), storage.Parameters())
}

// Directory returns storage in a directory, such as a mounted volume.
func Directory(dir string, readOnly bool) configuration.Storage {
	storage := configuration.Storage{"filesystem": {"rootdirectory": dir}}
	if readOnly {
		storage["maintenance"] = rejectPushes()
	}
	return storage
}

// rejectPushes returns the `maintenance` storage settings that make the registry reject pushes and
// keep abandoned uploads.
func rejectPushes() configuration.Parameters {
	return configuration.Parameters{
		"readonly": map[any]any{"enabled": true}, "uploadpurging": map[any]any{"enabled": false},
	}
}

// ReadConfiguration reads a file in the format of distribution's registry, which is also the format
// of OpenShift 3's registry. Environment variables such as REGISTRY_STORAGE_S3_SECRETKEY override
// settings in the file. Unsupported settings are an error.
func ReadConfiguration(path string) (*configuration.Configuration, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("read registry configuration: %w", err)
	}
	defer file.Close()
	settings, err := configuration.Parse(file)
	if err != nil {
		return nil, fmt.Errorf("parse configuration of registry %q: %w", path, err)
	}
	if err := understood(settings); err != nil {
		return nil, fmt.Errorf("check configuration of registry %q: %w", path, err)
	}
	return settings, nil
}

// understood returns an error that lists all unsupported settings and all missing required
// settings.
func understood(settings *configuration.Configuration) error {
	var problems []error
	rejectIf := func(bad bool, format string, values ...any) {
		if bad {
			problems = append(problems, fmt.Errorf(format, values...))
		}
	}
	kind := settings.Storage.Type()
	inS3 := slices.Contains(s3.Names(), kind)
	rejectIf(kind != "filesystem" && !inS3, "storage %q is not supported; use filesystem or s3", kind)
	rejectIf(kind == "filesystem" && settings.Storage.Parameters()["rootdirectory"] == nil, "storage.filesystem needs rootdirectory")
	if inS3 {
		err := s3.Check(settings.Storage.Parameters())
		rejectIf(err != nil, "%w", err)
	}
	http := settings.HTTP
	rejectIf(http.TLS.LetsEncrypt.CacheFile != "", "http.tls.letsencrypt is not supported; set http.tls.certificate and http.tls.key")
	rejectIf((http.TLS.Certificate == "") != (http.TLS.Key == ""), "http.tls.certificate and http.tls.key must be set together")
	rejectIf(len(http.TLS.ClientCAs) > 0 && http.TLS.Certificate == "", "http.tls.clientcas needs http.tls.certificate and http.tls.key: clients send certificates only over TLS")
	rejectIf(http.Debug.Addr != "", "http.debug is not supported; remove it")
	rejectIf(http.Prefix != "" && http.Prefix != "/", "http.prefix is not supported; remove it")
	rejectIf(http.H2C.Enabled, "http.h2c is not supported; remove it")
	rejectIf(len(http.TLS.CipherSuites) > 0, "http.tls.ciphersuites is not supported; remove it, and Go's secure defaults are used")
	rejectIf(settings.Proxy.RemoteURL != "", "proxy is not supported; remove it, and use image streams, which pull images through from other registries")
	switch kind := settings.Auth.Type(); kind {
	case "", "none", "token":
	case "htpasswd":
		path, _ := settings.Auth.Parameters()["path"].(string)
		_, err := os.Stat(path)
		rejectIf(err != nil, "auth.htpasswd.path: %w; create it with: slipway htpasswd --file %s set USER", err, path)
	default:
		rejectIf(true, "auth %q is not supported; use htpasswd or token", kind)
	}
	return errors.Join(problems...)
}

// readOnly returns the value of the maintenance.readonly.enabled setting.
func readOnly(storage configuration.Storage) bool {
	setting, _ := storage["maintenance"]["readonly"].(map[any]any)
	enabled, _ := setting["enabled"].(bool)
	return enabled
}

// prepareStorage creates the directory of filesystem storage. Only the directory's owner can read
// it.
func prepareStorage(storage configuration.Storage) error {
	dir, _ := storage.Parameters()["rootdirectory"].(string)
	if storage.Type() != "filesystem" || dir == "" {
		return nil
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("create registry directory: %w", err)
	}
	return nil
}
