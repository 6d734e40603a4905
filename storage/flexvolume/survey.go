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
)

// Survey looks at the drivers of a plug-in directory once, as a Registry does at its start: it finds them and calls init, which may be
// repeated at any time, of all of them at the same time. It changes nothing. The entries are ready or failed, and sorted by
// directory. A directory that does not exist has none.
func Survey(ctx context.Context, pluginDir string, settings func(driver string) Settings) ([]Entry, error) {
	dirs, err := os.ReadDir(pluginDir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("read FlexVolume plug-in directory: %w", err)
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
		inits.Go(func() { entries[i].survey(ctx, pluginDir, settings) })
	}
	inits.Wait()
	return entries, nil
}

// survey fills in what is found about one driver.
func (e *Entry) survey(ctx context.Context, pluginDir string, settings func(driver string) Settings) {
	e.State = StateFailed
	found, err := Find(pluginDir, e.Name)
	if err != nil {
		e.Err = err
		return
	}
	e.Version = found.Version
	driver := NewDriver(e.Name, found.Path, Settings{})
	if settings != nil {
		driver = NewDriver(e.Name, found.Path, settings(e.Name))
	}
	driver.version = found.Version
	if _, err := driver.Init(ctx); errors.Is(err, ErrNotSupported) {
		e.Err = fmt.Errorf("run init of FlexVolume driver %q: %w", e.Name, err)
		return
	} else if err != nil {
		e.Err = err
		return
	}
	e.State, e.Driver = StateReady, driver
}

// Kept are the versions, by driver, of which a Registry has kept copies: those that could be initialized last. A directory that does
// not exist has none.
func Kept(keepDir string) map[string]string {
	versions := map[string]string{}
	dirs, _ := os.ReadDir(keepDir)
	for _, dir := range dirs {
		if have, err := readKept(filepath.Join(keepDir, dir.Name())); err == nil {
			versions[UnescapeName(dir.Name())] = have.Version
		}
	}
	return versions
}

// String lists what is true of the capabilities, in the words of the interface.
func (c Capabilities) String() string {
	var words []string
	for _, one := range []struct {
		has  bool
		word string
	}{
		{c.Attach, "attach"},
		{c.SELinuxRelabel, "selinuxRelabel"},
		{c.SupportsMetrics, "supportsMetrics"},
		{c.FSGroup, "fsGroup"},
		{c.RequiresFSResize, "requiresFSResize"},
	} {
		if one.has {
			words = append(words, one.word)
		}
	}
	return strings.Join(words, ",")
}
