package content

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/kubectl/pkg/cmd/util"
)

// extract holds the state of `oc image extract`.
type extract struct {
	genericiooptions.IOStreams
	access access
	filter filter

	paths, files                          []string
	confirm, dryRun, onlyFiles, ownership bool
}

func newExtract(streams genericiooptions.IOStreams) *cobra.Command {
	e := &extract{IOStreams: streams}
	command := &cobra.Command{
		Use: "extract IMAGE[LAYERS] [--path SOURCE:DIRECTORY]... [--file PATH]...", Short: "Copy files from an image to the file system",
		Long: `Extract files from an image without running it.

--path takes a directory of the image (with a trailing /), a file or a pattern, and an existing directory. The directory must be empty, unless --confirm is set.
--file extracts single files into the current directory. LAYERS in brackets selects layers: [0] the first, [-1] the last, [2:4], [:-1], or a digest.
The command never writes outside the directories. It omits devices.`,
		Example: `  # Extract everything into the current directory
  oc image extract registry.example.com/app:v1

  # Extract a directory
  oc image extract registry.example.com/app:v1 --path /usr/share/app/:/tmp/app

  # Extract one file
  oc image extract registry.example.com/app:v1 --file /etc/os-release

  # Extract the content of the last layer
  oc image extract registry.example.com/app:v1[-1] --path /:/tmp/last --confirm`,
		Run: func(command *cobra.Command, args []string) {
			if len(args) != 1 {
				util.CheckErr(util.UsageErrorf(command, "specify one image"))
			}
			util.CheckErr(e.run(command.Context(), args[0]))
		},
	}
	flags := command.Flags()
	e.access.addFlags(flags)
	e.filter.addFlags(flags)
	flags.StringSliceVar(&e.paths, "path", nil, "Path in the image and the directory for it, as SOURCE:DIRECTORY.")
	flags.StringSliceVar(&e.files, "file", nil, "File to extract into the current directory.")
	flags.BoolVar(&e.confirm, "confirm", false, "Write into directories that are not empty.")
	flags.BoolVar(&e.dryRun, "dry-run", false, "Print what would be written, without writing it.")
	flags.BoolVar(&e.onlyFiles, "only-files", false, "Omit links and empty directories.")
	flags.BoolVarP(&e.ownership, "preserve-ownership", "p", false, "Set the owners of the files as in the image. This needs root.")
	return command
}

func (e *extract) run(ctx context.Context, arg string) error {
	reference, choice, err := splitLayers(arg)
	if err != nil {
		return err
	}
	wants, err := e.wants()
	if err != nil {
		return err
	}
	if err := e.filter.complete(); err != nil {
		return err
	}
	registries, err := e.access.open(ctx, e.ErrOut)
	if err != nil {
		return err
	}
	desc, _, err := registries.get(reference)
	if err != nil {
		return err
	}
	image, err := e.filter.single(desc, true)
	if err != nil {
		return err
	}
	layers, err := image.Layers()
	if err == nil {
		layers, err = choice.of(layers)
	}
	if err != nil {
		return explain("read layers of", reference, err)
	}
	return e.unpack(layers, wants)
}

// want is a path in the image and its destination.
type want struct {
	// source is a path in the image without a leading /, or a pattern. all means that only the
	// content of source is selected, not source itself.
	source string
	all    bool
	// directory is the destination. single means that source must be a single, existing file.
	// matched means that the image contains source.
	directory string
	single    bool
	matched   bool
}

// wants parses --path and --file, and checks the destination directories.
func (e *extract) wants() (all []*want, err error) {
	paths := e.paths
	if len(paths) == 0 && len(e.files) == 0 {
		paths = []string{"/:."}
	}
	for _, text := range paths {
		source, directory, ok := strings.Cut(text, ":")
		if !ok || source == "" || directory == "" {
			return nil, fmt.Errorf("--path %q must be SOURCE:DIRECTORY", text)
		}
		if _, err := path.Match(source, ""); err != nil {
			return nil, fmt.Errorf("--path %q: parse %q: %w", text, source, err)
		}
		if err := e.usable(directory); err != nil {
			return nil, err
		}
		all = append(all, &want{source: inside(source), all: strings.HasSuffix(source, "/"), directory: directory})
	}
	for _, file := range e.files {
		if inside(file) == "." {
			return nil, fmt.Errorf("--file %q is not a file", file)
		}
		all = append(all, &want{source: inside(file), directory: ".", single: true})
	}
	return all, nil
}

// inside returns the path of an entry without a leading / and without .. elements. For the root
// directory, it returns ".".
func inside(name string) string {
	if name = path.Clean("/" + filepath.ToSlash(name))[1:]; name == "" {
		return "."
	}
	return name
}

func (e *extract) usable(directory string) error {
	entries, err := os.ReadDir(directory)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("directory %q does not exist: create it first", directory)
	case err != nil:
		return fmt.Errorf("read directory: %w", err)
	case len(entries) > 0 && !e.confirm && !e.dryRun:
		return fmt.Errorf("directory %q must be empty: use --confirm to overwrite its contents", directory)
	}
	return nil
}

// target returns the path of an image entry within directory. It returns false if w does not select
// the entry.
func (w *want) target(entry string) (string, bool) {
	source := w.source
	if source == "." {
		return entry, entry != "."
	}
	below := len(strings.Split(source, "/"))
	parts := strings.Split(entry, "/")
	if len(parts) < below {
		return "", false
	}
	if matches, err := path.Match(source, strings.Join(parts[:below], "/")); err != nil || !matches {
		return "", false
	}
	if !w.all {
		below--
	}
	rest := strings.Join(parts[below:], "/")
	return rest, rest != "" && (!w.single || len(parts) == below+1)
}

// layerChoice selects layers by digest, or by a half-open range of indexes. Negative indexes count
// from the end.
type layerChoice struct {
	digest   string
	from, to int
	ranged   bool
	open     bool
}

// splitLayers splits IMAGE[LAYERS] into the image and the selected layers. Without brackets, choice
// selects all layers.
func splitLayers(arg string) (reference string, choice layerChoice, err error) {
	reference, rest, ok := strings.Cut(arg, "[")
	if !ok {
		return arg, choice, nil
	}
	text, closed := strings.CutSuffix(rest, "]")
	wrong := fmt.Errorf("parse layers of %q: must be a number, FROM:TO or a digest in brackets, such as [0], [-1] or [1:3]", arg)
	if !closed || text == "" {
		return "", choice, wrong
	}
	if strings.HasPrefix(text, "sha256:") {
		return reference, layerChoice{digest: text}, nil
	}
	choice.ranged = true
	first, last, several := strings.Cut(text, ":")
	if first != "" || !several {
		if choice.from, err = strconv.Atoi(first); err != nil {
			return "", choice, wrong
		}
	}
	switch {
	case !several:
		choice.to, choice.open = choice.from+1, choice.from == -1
	case last == "":
		choice.open = true
	default:
		if choice.to, err = strconv.Atoi(last); err != nil {
			return "", choice, wrong
		}
	}
	return reference, choice, nil
}

func (c layerChoice) of(layers []v1.Layer) ([]v1.Layer, error) {
	if c.digest != "" {
		for _, layer := range layers {
			if digest, err := layer.Digest(); err != nil || digest.String() == c.digest {
				return []v1.Layer{layer}, err
			}
		}
		return nil, fmt.Errorf("the image does not have the layer %q", c.digest)
	}
	if !c.ranged {
		return layers, nil
	}
	from, to := c.from, c.to
	if from < 0 {
		from += len(layers)
	}
	if c.open {
		to = len(layers)
	}
	if to < 0 {
		to += len(layers)
	}
	if from < 0 || to > len(layers) || from >= to {
		return nil, fmt.Errorf("the image has %d layers, so the range in brackets is invalid", len(layers))
	}
	return layers[from:to], nil
}
