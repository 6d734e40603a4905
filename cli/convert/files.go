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

// AcceptOldManifests makes the -f flag of a command and its subcommands accept objects in API
// versions that are no longer served. The command reads converted copies of the files that contain
// such objects. The copies are removed when the command exits. Objects at URLs are not converted,
// because the command itself downloads them.
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
		validate := command.Flags().Lookup("validate")
		files := &oldManifests{streams: streams, flatten: validate != nil && validate.Deprecated == "", quiet: command.Name() == "get"}
		defer files.remove()
		util.BehaviorOnFatal(func(message string, code int) {
			files.remove()
			fatal(files.withNames(message), code)
		})
		defer util.BehaviorOnFatal(fatal)
		recursive, _ := command.Flags().GetBool("recursive") // false if the flag does not exist
		replaced, err := files.convert(names.GetSlice(), recursive)
		util.CheckErr(err)
		if replaced != nil {
			util.CheckErr(names.Replace(replaced))
		}
		if files.hasReview && validate != nil && !validate.Changed {
			util.CheckErr(validate.Value.Set("false"))
		}
		run(command, args)
	}
}

// oldManifests contains the converted copies of files.
type oldManifests struct {
	streams genericiooptions.IOStreams
	// flatten means that the items of lists become separate documents. This avoids warnings,
	// because kubectl's validation does not support lists.
	flatten bool
	// hasReview means that a file contains a review, whose fields kubectl cannot validate.
	hasReview bool
	// quiet means that conversions are not reported, because the command uses only the objects'
	// names.
	quiet bool
	dir   string
	// names contains pairs of paths: the path of a copy, followed by the file name that the user
	// specified.
	names []string
}

// extensions contains the extensions of the files that are read from a directory.
var extensions = []string{".json", ".yaml", ".yml"}

// convert replaces the names of files that need conversion with the paths of their converted
// copies. It returns nil if no file needs conversion.
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

// convertAll replaces the paths of files that need conversion with the paths of their copies. It
// returns nil if no file needs conversion. A file that can be read only once is always copied.
func (o *oldManifests) convertAll(paths []string) ([]string, error) {
	copies, changed := slices.Clone(paths), false
	for i, path := range paths {
		text, err := o.read(path)
		if err != nil {
			return nil, err
		}
		converted, changes := manifest.Convert(text)
		for _, change := range changes {
			if o.quiet {
				break
			}
			fmt.Fprintf(o.streams.ErrOut, "Warning: %s\n", change)
		}
		hasList := false
		if o.flatten {
			converted, hasList = manifest.Flatten(converted)
			o.hasReview = o.hasReview || manifest.HasReview(converted)
		}
		if len(changes) == 0 && !hasList && !readOnce(path) {
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

// readOnce reports whether a file can be read only once: standard input, or a pipe.
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

// write writes a converted file to a temporary copy and returns its path.
func (o *oldManifests) write(path string, text []byte) (string, error) {
	if o.dir == "" {
		dir, err := os.MkdirTemp("", "oc-manifests-")
		if err != nil {
			return "", fmt.Errorf("create directory for converted manifests: %w", err)
		}
		o.dir = dir
	}
	name := path
	if path == stdin {
		name, path = "STDIN", "stdin.yaml"
	}
	file, err := os.CreateTemp(o.dir, "*-"+filepath.Base(path))
	if err != nil {
		return "", fmt.Errorf("create converted manifest: %w", err)
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

// withNames replaces the paths of copies in a message with the file names that the user passed.
func (o *oldManifests) withNames(message string) string {
	return strings.NewReplacer(o.names...).Replace(message)
}

func (o *oldManifests) remove() {
	if o.dir != "" {
		_ = os.RemoveAll(o.dir)
	}
}

// files returns the paths for a file name: the name itself, or the files that match a directory or
// pattern. For a URL or a missing file, it returns no paths, because the command itself reads URLs,
// and has a better message for missing files.
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
	var paths []string
	err = filepath.WalkDir(name, func(path string, entry os.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && path != name && !recursive:
			return filepath.SkipDir
		case !entry.IsDir() && slices.Contains(extensions, filepath.Ext(path)):
			paths = append(paths, path)
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("list manifests: %w", err)
	}
	return paths, nil
}
