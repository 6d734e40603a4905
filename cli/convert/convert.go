// Package convert converts manifests of OpenShift 3 to current API versions, for `oc convert` and
// for the flag -f of every command.
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

// New returns `oc convert`, which converts files with objects of API versions that are no longer
// served.
func New(streams genericiooptions.IOStreams) *cobra.Command {
	var names []string
	recursive, output := false, ""
	command := &cobra.Command{
		Use:   "convert -f FILENAME",
		Short: "Convert config files between different API versions",
		Long: `Print the objects of files in the API versions that the cluster serves. The command needs no connection to a server.

Commands with -f convert files automatically. This command shows the result.`,
		Example: `  # Convert a manifest of OpenShift 3 to current versions
  oc convert -f app.yaml > converted.yaml`,
		Args: cobra.NoArgs,
		Run: func(command *cobra.Command, _ []string) {
			if len(names) == 0 {
				util.CheckErr(util.UsageErrorf(command, "name the files with -f"))
			}
			if output != "yaml" && output != "json" {
				util.CheckErr(util.UsageErrorf(command, "invalid output format %q: must be yaml or json", output))
			}
			o := &oldManifests{streams: streams}
			for _, name := range names {
				paths, err := files(name, recursive)
				util.CheckErr(err)
				if len(paths) == 0 {
					util.CheckErr(fmt.Errorf("read manifest: file %q does not exist", name))
				}
				for _, path := range paths {
					text, err := o.read(path)
					util.CheckErr(err)
					util.CheckErr(writeConverted(streams, path, text, output))
				}
			}
		},
	}
	flags := command.Flags()
	flags.StringSliceVarP(&names, "filename", "f", nil, "Files, directories, or - for standard input.")
	flags.BoolVarP(&recursive, "recursive", "R", false, "Read subdirectories, too.")
	flags.StringVarP(&output, "output", "o", "yaml", "Output format: yaml or json.")
	return command
}

// writeConverted prints the objects of a file, and prints changes as warnings.
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
