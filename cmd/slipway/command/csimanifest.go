package command

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/printers"

	"github.com/slipway-platform/slipway/storage/csi/manifest"
)

func trimScheme(address string) string {
	return strings.TrimPrefix(strings.TrimPrefix(address, "unix:"), "//")
}

func csiManifestCommand(opts *options) *cobra.Command {
	var (
		c       manifest.Config
		object  csiObject
		without []string
	)
	command := &cobra.Command{
		Use:   "manifest --driver NAME --image IMAGE",
		Short: "Print the objects that deploy a driver: controllers with leader election, the driver on each node, and permissions",
		Example: "  slipway csi manifest --driver disk.csi.example.org --image example.org/disk:1 | oc apply -f -\n" +
			"  slipway csi manifest --driver nfs.csi.example.org --image example.org/nfs:1 --without attach,resize,snapshot,secrets",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			for _, name := range without {
				c.DisabledFeatures = append(c.DisabledFeatures, manifest.Feature(name))
			}
			spec, err := object.fields(false)
			if err != nil {
				return err
			}
			c.Object = *spec
			if c.Kubelet == "" {
				if c.Kubelet, err = opts.kubeletDir(); err != nil {
					return err
				}
			}
			objects, err := c.Objects()
			if err != nil {
				return err
			}
			printer := printers.NewTypeSetter(nil).ToPrinter(&printers.YAMLPrinter{})
			for _, object := range objects {
				if err := printer.PrintObj(object, cmd.OutOrStdout()); err != nil {
					return fmt.Errorf("print manifest: %w", err)
				}
			}
			return nil
		},
	}
	set := command.Flags()
	set.StringVar(&c.Driver, "driver", "", "name that the driver reports")
	set.StringVar(&c.Image, "image", "", "image of the driver")
	set.StringSliceVar(&c.Arguments, "argument", nil, "argument of the driver's container; can be repeated")
	set.StringVar(&c.SidecarImage, "helper-image", "localhost/slipway:current", "Slipway image for the sidecar containers")
	set.StringVar(&c.Namespace, "namespace", "kube-system", "namespace that the driver runs in; it must exist")
	set.StringVar(&c.Kubelet, "kubelet-dir", "", "the kubelet's directory on the nodes; the default is the platform's directory on this host, or else "+usualKubeletDir)
	set.Int32Var(&c.Replicas, "replicas", 2, "number of controllers, of which one is the leader")
	set.StringToStringVar(&c.NodeSelector, "node-selector", nil, "labels of the nodes for the controllers, such as infrastructure nodes")
	set.StringSliceVar(&without, "without", nil, "features that the driver does not have; their permissions are omitted: attach, provision, resize, snapshot, secrets")
	set.StringVar(&c.SecretsNamespace, "secrets-namespace", "", "the only namespace whose secrets are read; the default is all namespaces")
	object.addFields(set)
	return command
}
