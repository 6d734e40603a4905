package content

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/docker/go-units"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/util/duration"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/cli-runtime/pkg/printers"
	"k8s.io/kubectl/pkg/cmd/util"
)

// info holds the state of `oc image info`.
type info struct {
	genericiooptions.IOStreams
	access access
	filter filter
	output string
}

func newInfo(streams genericiooptions.IOStreams) *cobra.Command {
	i := &info{IOStreams: streams}
	command := &cobra.Command{
		Use: "info IMAGE...", Short: "Display information about an image",
		Long: "Print the metadata of images in registries: digest, size, layers, and the configuration of containers.",
		Example: `  oc image info registry.example.com/team/app:v1
  oc image info registry.example.com/team/app:v1 --filter-by-os=linux/arm64 -o json`,
		Args: cobra.MinimumNArgs(1),
		Run: func(command *cobra.Command, args []string) {
			util.CheckErr(i.filter.complete())
			registries, err := i.access.open(command.Context(), i.ErrOut)
			util.CheckErr(err)
			util.CheckErr(i.run(registries, args))
		},
	}
	i.access.addFlags(command.Flags())
	i.filter.addFlags(command.Flags())
	command.Flags().StringVarP(&i.output, "output", "o", "", "Output format: json.")
	return command
}

// description is the output of --output=json.
type description struct {
	Name       string          `json:"name"`
	Digest     v1.Hash         `json:"digest"`
	ListDigest *v1.Hash        `json:"listDigest,omitempty"`
	MediaType  types.MediaType `json:"mediaType"`
	Layers     []v1.Descriptor `json:"layers"`
	Config     *v1.ConfigFile  `json:"config"`
}

func (i *info) run(registries *registries, references []string) error {
	if i.output != "" && i.output != "json" {
		return fmt.Errorf("--output %q must be json", i.output)
	}
	for n, reference := range references {
		image, err := i.describe(registries, reference)
		if err != nil {
			return err
		}
		if i.output == "json" {
			text, err := json.MarshalIndent(image, "", "  ")
			if err != nil {
				return err
			}
			fmt.Fprintln(i.Out, string(text))
			continue
		}
		if n > 0 {
			fmt.Fprintln(i.Out)
		}
		if err := image.print(i.Out, time.Now()); err != nil {
			return err
		}
	}
	return nil
}

func (i *info) describe(registries *registries, reference string) (*description, error) {
	desc, _, err := registries.get(reference)
	if err != nil {
		return nil, err
	}
	image, err := i.filter.single(desc, false)
	if err != nil {
		return nil, err
	}
	details := &description{Name: reference}
	if details.Digest, err = image.Digest(); err != nil {
		return nil, explain("read image", reference, err)
	}
	if details.Digest != desc.Digest {
		details.ListDigest = &desc.Digest
	}
	manifest, err := image.Manifest()
	if err != nil {
		return nil, explain("read manifest of", reference, err)
	}
	details.Layers = manifest.Layers
	if details.MediaType, err = image.MediaType(); err != nil {
		return nil, err
	}
	if details.Config, err = image.ConfigFile(); err != nil {
		return nil, explain("read configuration of", reference, err)
	}
	return details, nil
}

// print prints the description in two columns: names and values.
func (d *description) print(out io.Writer, now time.Time) error {
	table := tabwriter.NewWriter(out, 0, 4, 1, ' ', 0)
	line := func(name string, value any) {
		if name != "" {
			name += ":"
		}
		fmt.Fprintf(table, "%s\t%s\n", name, printers.EscapeTerminal(fmt.Sprint(value)))
	}
	line("Name", d.Name)
	line("Digest", d.Digest)
	if d.ListDigest != nil {
		line("Manifest List", *d.ListDigest)
	}
	line("Media Type", d.MediaType)
	created := "<unknown>"
	if at := d.Config.Created; !at.IsZero() {
		created = duration.ShortHumanDuration(now.Sub(at.Time)) + " ago"
	}
	line("Created", created)
	d.printLayers(line)
	line("OS", d.Config.OS)
	line("Arch", d.Config.Architecture)
	config := d.Config.Config
	for _, of := range []struct {
		name  string
		value []string
	}{
		{"Entrypoint", []string{strings.Join(config.Entrypoint, " ")}},
		{"Command", []string{strings.Join(config.Cmd, " ")}},
		{"Working Dir", []string{config.WorkingDir}},
		{"User", []string{config.User}},
		{"Exposes Ports", []string{strings.Join(slices.Sorted(maps.Keys(config.ExposedPorts)), ", ")}},
		{"Environment", config.Env},
		{"Labels", pairs(config.Labels)},
		{"Volumes", slices.Sorted(maps.Keys(config.Volumes))},
	} {
		printMany(line, of.name, of.value)
	}
	return table.Flush()
}

// printMany prints each value on its own line. The first line also contains the name.
func printMany(line func(name string, value any), name string, values []string) {
	for n, value := range values {
		switch {
		case n > 0:
			line("", value)
		case value != "":
			line(name, value)
		}
	}
}

func (d *description) printLayers(line func(name string, value any)) {
	var total int64
	var layers []string
	for _, layer := range d.Layers {
		total += layer.Size
		layers = append(layers, fmt.Sprintf("%s\t%s", units.HumanSize(float64(layer.Size)), layer.Digest))
	}
	size := units.HumanSize(float64(total))
	if len(layers) > 1 {
		size = fmt.Sprintf("%s in %d layers", size, len(layers))
	}
	line("Image Size", size)
	printMany(line, "Layers", layers)
}

func pairs(values map[string]string) (all []string) {
	for _, key := range slices.Sorted(maps.Keys(values)) {
		all = append(all, key+"="+values[key])
	}
	return all
}
