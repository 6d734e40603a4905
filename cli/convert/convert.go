// Package convert converts OpenShift 3 manifests to current API versions, for `oc convert` and for
// the -f flag of every command.
package convert

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/kubectl/pkg/cmd/util"
	"sigs.k8s.io/yaml"

	"github.com/slipway-platform/slipway/cli/manifest"
)

// options contains the flags of `oc convert`.
type options struct {
	streams   genericiooptions.IOStreams
	names     []string
	recursive bool
	output    string
}

// New returns the `oc convert` command, which reads objects from files and prints them in API
// versions that the cluster serves.
func New(streams genericiooptions.IOStreams) *cobra.Command {
	o := &options{streams: streams}
	command := &cobra.Command{
		Use:   "convert -f FILENAME",
		Short: "Convert config files between different API versions",
		Long: `Print the objects of files in the API versions that the cluster serves. The command needs no connection to a server.

Commands with -f convert files automatically. This command shows the result.`,
		Example: `  # Convert a manifest of OpenShift 3 to current versions
  oc convert -f app.yaml > converted.yaml`,
		Args: cobra.NoArgs,
		Run: func(command *cobra.Command, _ []string) {
			util.CheckErr(o.validate(command))
			util.CheckErr(o.run())
		},
	}
	flags := command.Flags()
	flags.StringSliceVarP(&o.names, "filename", "f", nil, "Files, directories, or - for standard input.")
	flags.BoolVarP(&o.recursive, "recursive", "R", false, "Read subdirectories, too.")
	flags.StringVarP(&o.output, "output", "o", "yaml", "Output format: yaml or json.")
	return command
}

func (o *options) validate(command *cobra.Command) error {
	if len(o.names) == 0 {
		return util.UsageErrorf(command, "specify the files with -f")
	}
	if o.output != "yaml" && o.output != "json" {
		return util.UsageErrorf(command, "invalid output format %q: must be yaml or json", o.output)
	}
	return nil
}

func (o *options) run() error {
	manifests := &oldManifests{streams: o.streams}
	for _, name := range o.names {
		paths, err := files(name, o.recursive)
		if err != nil {
			return err
		}
		if len(paths) == 0 {
			return fmt.Errorf("read manifest: file %q does not exist", name)
		}
		for _, path := range paths {
			text, err := manifests.read(path)
			if err != nil {
				return err
			}
			if err := writeConverted(o.streams, path, text, o.output); err != nil {
				return err
			}
		}
	}
	return nil
}

// writeConverted prints the converted objects of a file. It prints a warning for each conversion.
func writeConverted(streams genericiooptions.IOStreams, path string, text []byte, output string) error {
	converted, changes := manifest.Convert(text)
	for _, change := range changes {
		fmt.Fprintf(streams.ErrOut, "Warning: %s\n", change)
	}
	for _, document := range bytes.Split(converted, []byte("\n---\n")) {
		var object map[string]any
		if err := yaml.Unmarshal(document, &object); err != nil {
			return fmt.Errorf("read manifest %q: %w", path, err)
		}
		if len(object) == 0 {
			continue
		}
		if err := writeDocument(streams.Out, object, output); err != nil {
			return fmt.Errorf("write manifest %q: %w", path, err)
		}
	}
	return nil
}

func writeDocument(out io.Writer, object map[string]any, output string) error {
	if output == "json" {
		encoder := json.NewEncoder(out)
		encoder.SetIndent("", "    ")
		return encoder.Encode(object)
	}
	content, err := yaml.Marshal(object)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(out, "---\n%s", content)
	return err
}
