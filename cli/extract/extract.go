// Package extract implements `oc extract`, which writes the contents of secrets and config maps to
// files.
package extract

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/cli-runtime/pkg/resource"
	"k8s.io/kubectl/pkg/cmd/util"
	"k8s.io/kubectl/pkg/scheme"

	"github.com/slipway-platform/slipway/cli/objects"
)

// stdout is the --to value that prints the files to standard output.
const stdout = "-"

// extraction holds the state of `oc extract`.
type extraction struct {
	genericiooptions.IOStreams
	target    string
	overwrite bool
	files     []string
	keys      []string
}

// New returns the `oc extract` command.
func New(factory util.Factory, streams genericiooptions.IOStreams) *cobra.Command {
	e := &extraction{IOStreams: streams}
	command := &cobra.Command{
		Use:   "extract RESOURCE/NAME [--to=DIRECTORY] [--keys=KEY ...]",
		Short: "Extract secrets or config maps to disk",
		Long: `Write the content of secrets and config maps to files, one file for each key.

Files are written to the current directory, for their owner only. With --to=- they are printed.`,
		Example: `  # Extract the secret "test" to the current directory
  oc extract secret/test

  # Extract the config map "nginx" to the directory /tmp
  oc extract configmap/nginx --to=/tmp

  # Print the key "nginx.conf" of a config map
  oc extract configmap/nginx --to=- --keys=nginx.conf`,
		Run: func(_ *cobra.Command, args []string) {
			util.CheckErr(e.run(factory, args))
		},
	}
	flags := command.Flags()
	flags.BoolVar(&e.overwrite, "confirm", false, "Overwrite files that exist.")
	flags.StringVar(&e.target, "to", ".", "Directory to write to, or - to print the files.")
	flags.StringSliceVarP(&e.files, "filename", "f", nil, "File, directory or URL with the objects to extract.")
	flags.StringSliceVar(&e.keys, "keys", nil, "Keys to extract. Default: all keys.")
	objects.AddPrintFlagsWithoutEffect(command)
	return command
}

func (e *extraction) run(factory util.Factory, args []string) error {
	var dir *os.Root
	if e.target != stdout {
		if _, err := os.Stat(e.target); err != nil {
			return err
		}
		root, err := os.OpenRoot(e.target)
		if err != nil {
			return err
		}
		defer func() { _ = root.Close() }()
		dir = root
	}
	namespace, explicit, err := factory.ToRawKubeConfigLoader().Namespace()
	if err != nil {
		return err
	}
	count := 0
	var problems []error // not an aggregate, because kubectl prints aggregates without "error:"
	err = factory.NewBuilder().WithScheme(scheme.Scheme, scheme.Scheme.PrioritizedVersionsAllGroups()...).
		NamespaceParam(namespace).DefaultNamespace().
		FilenameParam(explicit, &resource.FilenameOptions{Filenames: e.files}).
		ResourceNames("", args...).ContinueOnError().Flatten().Do().
		Visit(func(info *resource.Info, err error) error {
			if err != nil {
				return err
			}
			contents, ok := contentsOf(info.Object)
			if !ok {
				fmt.Fprintf(e.ErrOut, "warning: %s/%s does not support extraction\n", info.Mapping.Resource.Resource, info.Name)
				return nil
			}
			count++
			problems = append(problems, e.extract(dir, contents))
			return nil
		})
	if err == nil && count == 0 {
		return errors.New("you must specify at least one resource to extract")
	}
	if failed := errors.Join(problems...); failed != nil {
		return errors.Join(failed, err)
	}
	return err
}

// extract writes an object's files, sorted by name. If dir is nil, it prints them.
func (e *extraction) extract(dir *os.Root, contents map[string][]byte) error {
	var problems []error
	for _, key := range slices.Sorted(maps.Keys(contents)) {
		if len(e.keys) > 0 && !slices.Contains(e.keys, key) {
			continue
		}
		content := contents[key]
		if dir == nil {
			fmt.Fprintf(e.ErrOut, "# %s\n", key)
			_, err := e.Out.Write(content)
			problems = append(problems, err)
			if !bytes.HasSuffix(content, []byte("\n")) {
				fmt.Fprintln(e.Out)
			}
			continue
		}
		if err := e.write(dir, key, content); err != nil {
			problems = append(problems, fmt.Errorf("%s: %w", key, err))
			continue
		}
		fmt.Fprintln(e.Out, filepath.Join(e.target, key))
	}
	return errors.Join(problems...)
}

// write writes one file. It returns an error if the file exists and --confirm is not set, or if the
// key is a path that escapes dir.
func (e *extraction) write(dir *os.Root, key string, content []byte) error {
	flags := os.O_WRONLY | os.O_CREATE | os.O_EXCL
	if e.overwrite {
		flags = os.O_WRONLY | os.O_CREATE | os.O_TRUNC
	}
	file, err := dir.OpenFile(key, flags, 0o600)
	switch {
	case errors.Is(err, fs.ErrExist):
		return errors.New("file exists, pass --confirm to overwrite")
	case err != nil:
		return err
	}
	_, err = file.Write(content)
	return errors.Join(err, file.Close())
}

// contentsOf returns the files in a secret or config map. For any other object, it returns false.
func contentsOf(object runtime.Object) (map[string][]byte, bool) {
	contents := map[string][]byte{}
	switch typed := object.(type) {
	case *corev1.Secret:
		maps.Copy(contents, typed.Data)
		for key, value := range typed.StringData {
			contents[key] = []byte(value)
		}
	case *corev1.ConfigMap:
		maps.Copy(contents, typed.BinaryData)
		for key, value := range typed.Data {
			contents[key] = []byte(value)
		}
	default:
		return nil, false
	}
	return contents, true
}
