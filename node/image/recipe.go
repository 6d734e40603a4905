package image

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"

	client "github.com/containerd/containerd/v2/client"
	"github.com/distribution/reference"
	"github.com/moby/buildkit/frontend/dockerfile/instructions"
	"github.com/moby/buildkit/frontend/dockerfile/parser"
	"github.com/moby/buildkit/frontend/dockerfile/shell"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
)

// Recipe describes an image that is derived from another image: a Dockerfile with a single stage
// that adds files and settings. The image is built without a container. Therefore, the Dockerfile
// can contain only FROM, ARG, ENV, ADD (with archives only to /), COPY, LABEL, USER, WORKDIR,
// EXPOSE, VOLUME, ENTRYPOINT and CMD. Other instructions, in particular RUN, are errors.
type Recipe struct {
	// File is the path of the Dockerfile. Context is the directory from which files are copied.
	File, Context string
	// Name is the image's reference.
	Name string
	// Arguments are values for the Dockerfile's ARGs.
	Arguments map[string]string
	// Waiting, if not nil, is called with the base image's name before Build waits until the node
	// has loaded the base image.
	Waiting func(name string)
}

// Build builds a recipe's image in the store, and replaces any image with the same name. The base
// is an image in the store, or scratch: Build does not pull images. It waits for platform images
// that the node has not loaded yet. It returns the image's full name. Errors contain the line in
// the Dockerfile.
func (s Store) Build(ctx context.Context, recipe Recipe) (string, error) {
	name, err := reference.ParseDockerRef(recipe.Name)
	if err != nil {
		return "", fmt.Errorf("parse image name %q: %w", recipe.Name, err)
	}
	parsed, err := recipe.read()
	if err != nil {
		return "", fmt.Errorf("read Dockerfile %q: %w", recipe.File, err)
	}
	c, err := s.connect()
	if err != nil {
		return "", err
	}
	defer c.Close()
	if err := s.build(ctx, c, name.String(), parsed, recipe); err != nil {
		return "", fmt.Errorf("build image %s: %w", name, err)
	}
	return name.String(), nil
}

func (s Store) build(ctx context.Context, c *client.Client, name string, r *reading, recipe Recipe) error {
	img := Image{Name: name}
	if r.base != "scratch" {
		base, err := s.baseImage(ctx, c, r.base, recipe.Waiting)
		if err != nil {
			return fmt.Errorf("use base image %q: %w", r.base, err)
		}
		img = base
		img.Name = name
	}
	if err := r.apply(&img, recipe.Context); err != nil {
		return err
	}
	return s.load(ctx, c, img)
}

// reading is a parsed recipe: its base image and its commands. Variables are expanded unless they
// depend on the base image.
type reading struct {
	base      string
	commands  []instructions.Command
	arguments map[string]string // the caller's arguments, and the defaults of ARGs before FROM
	args      map[string]string // ARGs after FROM
	names     map[string]bool   // names of all ARGs
	lex       *shell.Lex
}

// read parses the Dockerfile. It fails if the caller sets an ARG that the Dockerfile does not
// declare.
func (r Recipe) read() (*reading, error) {
	file, err := os.Open(r.File)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	parsed, err := parser.Parse(file)
	if err != nil {
		return nil, err
	}
	stages, before, err := instructions.Parse(parsed.AST, nil)
	if err != nil {
		return nil, err
	}
	if len(stages) != 1 {
		return nil, fmt.Errorf("it has %d stages; without a builder, a Dockerfile must have one stage", len(stages))
	}
	read := &reading{
		commands: stages[0].Commands, arguments: map[string]string{}, args: map[string]string{}, names: map[string]bool{},
		lex: shell.NewLex(parsed.EscapeToken),
	}
	for _, arg := range before {
		if err := read.argument(read.arguments, arg.Args, r.Arguments); err != nil {
			return nil, err
		}
	}
	if read.base, err = read.expand(stages[0].BaseName, read.arguments); err != nil {
		return nil, err
	}
	for _, command := range read.commands {
		arg, ok := command.(*instructions.ArgCommand)
		if !ok {
			continue
		}
		if err := read.argument(read.args, arg.Args, r.Arguments); err != nil {
			return nil, fmt.Errorf("line %d: %w", line(command), err)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(r.Arguments)) {
		if !read.names[name] {
			return nil, fmt.Errorf("it has no ARG %s", name)
		}
	}
	return read, nil
}

// argument sets the values of an ARG instruction. The caller's values take precedence over the
// defaults, which can refer to earlier ARGs.
func (r *reading) argument(values map[string]string, args []instructions.KeyValuePairOptional, fromCaller map[string]string) error {
	for _, arg := range args {
		r.names[arg.Key] = true
		value, ok := fromCaller[arg.Key]
		if !ok {
			value = r.arguments[arg.Key]
			if arg.Value != nil {
				var err error
				if value, err = r.expand(*arg.Value, values); err != nil {
					return err
				}
			}
		}
		values[arg.Key] = value
	}
	return nil
}

func (r *reading) expand(word string, values map[string]string) (string, error) {
	var list []string
	for name, value := range values {
		list = append(list, name+"="+value)
	}
	expanded, _, err := r.lex.ProcessWord(word, shell.EnvsFromSlice(list))
	return expanded, err
}

// apply applies the commands to an image, which already contains its base image's settings and
// layers.
func (r *reading) apply(img *Image, dir string) error {
	for _, command := range r.commands {
		if expandable, ok := command.(instructions.SupportsSingleWordExpansion); ok {
			values := maps.Clone(r.args)
			for _, variable := range img.config.Env { // environment variables override arguments
				name, value, _ := strings.Cut(variable, "=")
				values[name] = value
			}
			expander := func(word string) (string, error) { return r.expand(word, values) }
			if err := expandable.Expand(expander); err != nil {
				return fmt.Errorf("line %d: %w", line(command), err)
			}
		}
		if err := run(command, img, dir); err != nil {
			return fmt.Errorf("line %d: %s: %w", line(command), strings.ToUpper(command.Name()), err)
		}
	}
	return nil
}

var errNoOptions = errors.New("options are not supported; build the image with podman or docker and load its archive")

// run applies one command.
func run(command instructions.Command, img *Image, dir string) error {
	config := &img.config
	switch command := command.(type) {
	case *instructions.ArgCommand:
	case *instructions.EnvCommand:
		for _, variable := range command.Env {
			setVariable(config, variable.Key, variable.Value)
		}
	case *instructions.LabelCommand:
		labels := maps.Clone(config.Labels)
		if labels == nil {
			labels = map[string]string{}
		}
		for _, label := range command.Labels {
			labels[label.Key] = label.Value
		}
		config.Labels = labels
	case *instructions.UserCommand:
		config.User = command.User
	case *instructions.WorkdirCommand:
		config.WorkingDir = path.Join("/", absolute(config.WorkingDir, command.Path))
	case *instructions.EntrypointCommand:
		config.Entrypoint, config.Cmd = commandLine(command.ShellDependantCmdLine), nil
	case *instructions.CmdCommand:
		config.Cmd = commandLine(command.ShellDependantCmdLine)
	case *instructions.VolumeCommand:
		volumes := maps.Clone(config.Volumes)
		if volumes == nil {
			volumes = map[string]struct{}{}
		}
		for _, volume := range command.Volumes {
			volumes[volume] = struct{}{}
		}
		config.Volumes = volumes
	case *instructions.ExposeCommand:
		return expose(config, command.Ports)
	case *instructions.AddCommand:
		if command.Chown != "" || command.Chmod != "" || len(command.ExcludePatterns) > 0 || command.Checksum != "" || command.Unpack != nil {
			return errNoOptions
		}
		return addFiles(command.SourcesAndDest, img, dir)
	case *instructions.CopyCommand:
		if command.From != "" || command.Chown != "" || command.Chmod != "" || len(command.ExcludePatterns) > 0 || command.Parents {
			return errNoOptions
		}
		return copyFiles(command.SourcesAndDest, img, dir)
	default:
		return errors.New("the instruction needs a builder such as podman or docker; build the image there and load its archive with: " +
			"slipway images load")
	}
	return nil
}

// expose adds ports such as 8080 and 53/udp to the image's configuration.
func expose(config *ocispec.ImageConfig, ports []string) error {
	exposed := maps.Clone(config.ExposedPorts)
	if exposed == nil {
		exposed = map[string]struct{}{}
	}
	for _, port := range ports {
		number, protocol, _ := strings.Cut(port, "/")
		protocol = strings.ToLower(cmp.Or(protocol, "tcp"))
		if n, err := strconv.ParseUint(number, 10, 16); err != nil || n == 0 || protocol != "tcp" && protocol != "udp" && protocol != "sctp" {
			return fmt.Errorf("%q is not a port such as 8080 or 53/udp", port)
		}
		exposed[number+"/"+protocol] = struct{}{}
	}
	config.ExposedPorts = exposed
	return nil
}

func setVariable(config *ocispec.ImageConfig, name, value string) {
	env := slices.DeleteFunc(slices.Clone(config.Env), func(variable string) bool { return strings.HasPrefix(variable, name+"=") })
	config.Env = append(env, name+"="+value)
}

func commandLine(line instructions.ShellDependantCmdLine) []string {
	if line.PrependShell {
		return append([]string{"/bin/sh", "-c"}, line.CmdLine...)
	}
	return line.CmdLine
}

func absolute(base, name string) string {
	if path.IsAbs(name) {
		return name
	}
	return path.Join("/", base, name)
}

// line returns the number of a command's first line.
func line(command instructions.Command) int {
	for _, location := range command.Location() {
		return location.Start.Line
	}
	return 0
}
