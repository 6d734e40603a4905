package flexvolume

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"
)

// inspectTimeout is the maximum time that Inspect waits for init.
const inspectTimeout = 3 * time.Second

// Inspect reads a plugin directory once and calls init on all drivers concurrently. It returns
// within about three seconds. A driver whose init takes longer is in StateFailed. Inspect changes
// nothing, because init can be repeated at any time. The entries are in StateReady or StateFailed,
// and are sorted by directory. If the directory does not exist, there are no entries.
func Inspect(ctx context.Context, pluginDir string, settings func(driver string) Settings) ([]Entry, error) {
	dirs, err := os.ReadDir(pluginDir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("read FlexVolume plugin directory: %w", err)
	}
	var entries []Entry
	for _, dir := range dirs {
		info, err := os.Stat(filepath.Join(pluginDir, dir.Name()))
		if err != nil || !info.IsDir() || strings.HasPrefix(dir.Name(), ".") {
			continue
		}
		entries = append(entries, Entry{Name: UnescapeName(dir.Name())})
	}
	var inits sync.WaitGroup
	for i := range entries {
		inits.Go(func() { entries[i].inspect(ctx, pluginDir, settings) })
	}
	inits.Wait()
	return entries, nil
}

// inspect fills in one driver's entry.
func (e *Entry) inspect(ctx context.Context, pluginDir string, settings func(driver string) Settings) {
	e.State = StateFailed
	installation, err := Find(pluginDir, e.Name)
	if err != nil {
		e.Err = err
		return
	}
	e.Version = installation.Version
	driver := NewDriver(e.Name, installation.Path, Settings{})
	if settings != nil {
		driver = NewDriver(e.Name, installation.Path, settings(e.Name))
	}
	driver.version = installation.Version
	ctx, cancel := context.WithTimeout(ctx, inspectTimeout)
	defer cancel()
	if _, err := driver.Init(ctx); errors.Is(err, ErrNotSupported) {
		e.Err = fmt.Errorf("run init of FlexVolume driver %q: %w", e.Name, err)
		return
	} else if err != nil {
		e.Err = err
		return
	}
	e.State, e.Driver = StateReady, driver
}

// LastGoodVersions maps each driver that has a last-good copy to the copy's version. If the
// directory does not exist, there are no copies.
func LastGoodVersions(keepDir string) map[string]string {
	versions := map[string]string{}
	dirs, _ := os.ReadDir(keepDir)
	for _, dir := range dirs {
		if desc, err := readLastGood(filepath.Join(keepDir, dir.Name())); err == nil {
			versions[UnescapeName(dir.Name())] = desc.Version
		}
	}
	return versions
}

// String returns the comma-separated names of the capabilities that are true.
func (c Capabilities) String() string {
	var words []string
	for _, capability := range []struct {
		has  bool
		word string
	}{
		{c.Attach, "attach"},
		{c.SELinuxRelabel, "selinuxRelabel"},
		{c.SupportsMetrics, "supportsMetrics"},
		{c.FSGroup, "fsGroup"},
		{c.RequiresFSResize, "requiresFSResize"},
	} {
		if capability.has {
			words = append(words, capability.word)
		}
	}
	return strings.Join(words, ",")
}
