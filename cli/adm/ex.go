package adm

import (
	"encoding/json"
	"fmt"
	"os"

	"github.com/spf13/cobra"
	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/kubectl/pkg/cmd/options"
	"k8s.io/kubectl/pkg/cmd/util"
	"k8s.io/kubectl/pkg/scheme"
	"sigs.k8s.io/yaml"

	"github.com/slipway-platform/slipway/cli/build"
	"github.com/slipway-platform/slipway/cli/diagnostics"
	"github.com/slipway-platform/slipway/cli/group"
	"github.com/slipway-platform/slipway/cli/objects"
)

// NewExperimental returns the `oc ex` command, which provides administrator commands under their
// former, experimental OpenShift 3 names.
func NewExperimental(factory util.Factory, streams genericiooptions.IOStreams) *cobra.Command {
	ex := &cobra.Command{
		Use:   "ex",
		Short: "Experimental commands of OpenShift 3",
		Long:  "Experimental commands of OpenShift 3. Most of them have a new name, which their help shows.",
		RunE:  func(command *cobra.Command, _ []string) error { return command.Help() },
	}
	config := &cobra.Command{Use: "config", Short: "Manage configuration files of the platform", Run: util.DefaultSubCommandRun(streams.ErrOut)}
	config.AddCommand(newConfigPatch(streams))
	sync, prune := group.NewGroupsSync(factory, streams), group.NewGroupsPrune(factory, streams)
	sync.Use, prune.Use = "sync-groups"+sync.Use[len("sync"):], "prune-groups"+prune.Use[len("prune"):]
	ex.AddCommand(options.NewCmdOptions(streams.Out), config, build.NewChain(factory, streams), newAdmFailover(factory, streams), diagnostics.New(factory, streams), sync, prune)
	return ex
}

// configPatch holds the state of `oc ex config patch`, which prints a patched copy of a
// configuration file. It does not change the file.
type configPatch struct {
	genericiooptions.IOStreams
	print       *genericclioptions.PrintFlags
	patch, kind string
}

func newConfigPatch(streams genericiooptions.IOStreams) *cobra.Command {
	p := &configPatch{IOStreams: streams, print: genericclioptions.NewPrintFlags("").WithDefaultOutput("yaml").WithTypeSetter(scheme.Scheme)}
	command := &cobra.Command{
		Use:   "patch FILENAME -p PATCH",
		Short: "Print a configuration file with a patch applied",
		Long:  "Print a configuration file, such as master-config.yaml, with a patch applied. The file does not change.",
		Example: `  # Print master-config.yaml with another public URL
  oc ex config patch master-config.yaml -p '{"masterPublicURL": "https://master.example.com:8443"}'`,
		Args: cobra.ExactArgs(1),
		Run: func(_ *cobra.Command, args []string) {
			util.CheckErr(p.run(args[0]))
		},
	}
	p.print.AddFlags(command)
	objects.AddOldPrintFlags(command)
	command.Flags().StringVarP(&p.patch, "patch", "p", "", "Patch, in JSON or YAML.")
	command.Flags().StringVar(&p.kind, "type", "strategic", "Type of the patch: json, merge or strategic.")
	util.CheckErr(command.MarkFlagRequired("patch"))
	return command
}

func (p *configPatch) run(file string) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	document, err := yaml.YAMLToJSON(text)
	if err != nil {
		return fmt.Errorf("read %q: %w", file, err)
	}
	patch, err := yaml.YAMLToJSON([]byte(p.patch))
	if err != nil {
		return fmt.Errorf("parse --patch: %w", err)
	}
	switch p.kind {
	case "json":
		var operations jsonpatch.Patch
		if operations, err = jsonpatch.DecodePatch(patch); err == nil {
			document, err = operations.Apply(document)
		}
	case "merge", "strategic": // no difference, because configuration files define no merge keys
		document, err = jsonpatch.MergePatch(document, patch)
	default:
		return fmt.Errorf("parse --type %q: must be json, merge or strategic", p.kind)
	}
	if err != nil {
		return fmt.Errorf("patch %q: %w", file, err)
	}
	object := &unstructured.Unstructured{}
	if err := json.Unmarshal(document, &object.Object); err != nil {
		return fmt.Errorf("patch %q: %w", file, err)
	}
	printer, err := p.print.ToPrinter()
	if err != nil {
		return err
	}
	return printer.PrintObj(object, p.Out)
}
