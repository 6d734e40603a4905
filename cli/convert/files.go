package convert

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/kubectl/pkg/cmd/util"

	"github.com/slipway-platform/slipway/cli/manifest"
)

// AcceptOldManifests makes a command and those below it accept, with -f, objects of API versions
// that are no longer served. Files are read first; one that holds such objects is replaced by a
// converted copy, which is removed when the command ends. Files behind URLs are left to the
// command.
func AcceptOldManifests(command *cobra.Command, fatal func(message string, code int), streams genericiooptions.IOStreams) {
	for _, child := range command.Commands() {
		AcceptOldManifests(child, fatal, streams)
	}
	flag := command.Flags().Lookup("filename")
	if flag == nil || command.Run == nil {
		return
	}
	names, ok := flag.Value.(pflag.SliceValue)
	if !ok {
		return
	}
	run := command.Run
	command.Run = func(command *cobra.Command, args []string) {
		files := &oldManifests{streams: streams}
		defer files.remove()
		util.BehaviorOnFatal(func(message string, code int) {
			files.remove()
			fatal(files.withNames(message), code)
		})
		defer util.BehaviorOnFatal(fatal)
		recursive, _ := command.Flags().GetBool("recursive") // false where there is no such flag
		replaced, err := files.convert(names.GetSlice(), recursive)
		util.CheckErr(err)
		if replaced != nil {
			util.CheckErr(names.Replace(replaced))
		}
		run(command, args)
	}
}

// oldManifests are converted copies of files.
type oldManifests struct {
	streams genericiooptions.IOStreams
	dir     string
	// names are the users' names of the copies.
	names []string
}

// extensions are the files that a directory is read for.
var extensions = []string{".json", ".yaml", ".yml"}

// convert returns names in which files with old objects are replaced by copies, or nil if there are
// none.
func (o *oldManifests) convert(names []string, recursive bool) ([]string, error) {
	var (
		replaced []string
		changed  bool
	)
	for _, name := range names {
		paths, err := files(name, recursive)
		if err != nil {
			return nil, err
		}
		converted, err := o.convertAll(paths)
		if err != nil {
			return nil, err
		}
		if converted == nil {
			replaced = append(replaced, name)
			continue
		}
		replaced, changed = append(replaced, converted...), true
	}
	if !changed {
		return nil, nil
	}
	return replaced, nil
}

// convertAll returns paths with copies instead of what needed conversion, or nil.
func (o *oldManifests) convertAll(paths []string) ([]string, error) {
	copies, changed := slices.Clone(paths), false
	for i, path := range paths {
		text, err := o.read(path)
		if err != nil {
			return nil, err
		}
		converted, changes := manifest.Convert(text)
		for _, change := range changes {
			fmt.Fprintf(o.streams.ErrOut, "Warning: %s\n", change)
		}
		if len(changes) == 0 && !readOnce(path) {
			continue
		}
		if copies[i], err = o.write(path, converted); err != nil {
			return nil, err
		}
		changed = true
	}
	if !changed {
		return nil, nil
	}
	return copies, nil
}

// readOnce reports whether what was read cannot be read again: standard input, a pipe.
func readOnce(path string) bool {
	info, err := os.Stat(path)
	return path == stdin || err == nil && !info.Mode().IsRegular()
}

// stdin is the file name of standard input.
const stdin = "-"

func (o *oldManifests) read(path string) ([]byte, error) {
	if path == stdin {
		text, err := io.ReadAll(o.streams.In)
		if err != nil {
			return nil, fmt.Errorf("read standard input: %w", err)
		}
		return text, nil
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read manifest: %w", err)
	}
	return text, nil
}

// write writes a copy of a file.
func (o *oldManifests) write(path string, text []byte) (string, error) {
	if o.dir == "" {
		dir, err := os.MkdirTemp("", "oc-manifests-")
		if err != nil {
			return "", fmt.Errorf("make directory for converted manifests: %w", err)
		}
		o.dir = dir
	}
	name := path
	if path == stdin {
		name, path = "STDIN", "stdin.yaml"
	}
	file, err := os.CreateTemp(o.dir, "*-"+filepath.Base(path))
	if err != nil {
		return "", fmt.Errorf("make converted manifest: %w", err)
	}
	_, err = io.Copy(file, bytes.NewReader(text))
	if closed := file.Close(); err == nil {
		err = closed
	}
	if err != nil {
		return "", fmt.Errorf("write converted manifest: %w", err)
	}
	o.names = append(o.names, file.Name(), name)
	return file.Name(), nil
}

// withNames returns a message in which the users' names of files replace those of the copies.
func (o *oldManifests) withNames(message string) string {
	return strings.NewReplacer(o.names...).Replace(message)
}

func (o *oldManifests) remove() {
	if o.dir != "" {
		_ = os.RemoveAll(o.dir)
	}
}

// files are the paths that a file name stands for: itself, those of a directory or of a pattern, or
// none for a URL and for what does not exist, which the command tells better.
func files(name string, recursive bool) ([]string, error) {
	if name == stdin {
		return []string{name}, nil
	}
	info, err := os.Stat(name)
	if err != nil {
		matches, _ := filepath.Glob(name)
		return matches, nil
	}
	if !info.IsDir() {
		return []string{name}, nil
	}
	var found []string
	err = filepath.WalkDir(name, func(path string, entry os.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && path != name && !recursive:
			return filepath.SkipDir
		case !entry.IsDir() && slices.Contains(extensions, filepath.Ext(path)):
			found = append(found, path)
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("list manifests: %w", err)
	}
	return found, nil
}
