package registry

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	coreclient "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/kubectl/pkg/cmd/util"
	"k8s.io/kubectl/pkg/scheme"
)

// registrySettings maps flags of OpenShift 3's `oc adm registry` to texts. A text contains the
// corresponding setting, or the reason why there is no setting. It is empty if the flag does not
// select a setting.
var registrySettings = map[string]string{
	"mount-host":               "set slipway.registry.directory of the MasterConfig",
	"volume":                   "set slipway.registry.directory of the MasterConfig, with the volume mounted there",
	"ports":                    "set slipway.registry.bindAddress of the MasterConfig",
	"supplemental-groups":      "set the owner of slipway.registry.directory of the MasterConfig",
	"tls-certificate":          "set imagePolicyConfig.externalRegistryHostname of the MasterConfig: Slipway creates and renews the certificate",
	"tls-key":                  "set imagePolicyConfig.externalRegistryHostname of the MasterConfig: Slipway creates and renews the certificate",
	"replicas":                 "the registry runs once, in the control plane",
	"selector":                 "the registry runs in the control plane, not in a pod",
	"daemonset":                "the registry runs in the control plane, not in a pod",
	"service-account":          "the registry runs in the control plane, not in a pod",
	"images":                   "the registry is in the program, not in an image",
	"latest-images":            "the registry is in the program, not in an image",
	"enforce-quota":            "quotas are always enforced",
	"cluster-ip":               "the address of the service is assigned automatically",
	"labels":                   "the service has the label docker-registry=default",
	"fs-group":                 "set the owner of slipway.registry.directory of the MasterConfig",
	"dry-run":                  "",
	"create":                   "",
	"credentials":              "the registry has its own credentials",
	"type":                     "there is one kind of registry",
	"local":                    "",
	"expose-metrics":           "the registry has no separate metrics",
	"disable-service-creation": "the service always exists",
}

// NewAdm returns the `oc adm registry` command. OpenShift 3's command deploys a registry. Because
// every Slipway cluster already has a registry, this command only prints the registry's address and
// the settings that correspond to the flags.
func NewAdm(factory util.Factory, streams genericiooptions.IOStreams) *cobra.Command {
	print := genericclioptions.NewPrintFlags("").WithTypeSetter(scheme.Scheme)
	command := &cobra.Command{
		Use: "registry", Short: "Show the cluster's image registry, which always exists",
		Long: `Show the cluster's image registry. It is part of the control plane from the first start, so the command deploys nothing. The MasterConfig contains the settings
for which OpenShift 3's command has flags. For each flag, the command prints the name of the setting, or the reason why there is none.

With -o, the command prints the only object of the registry, its service.`,
		Args: cobra.NoArgs,
		Run: func(command *cobra.Command, _ []string) {
			command.Flags().Visit(func(flag *pflag.Flag) {
				if setting := registrySettings[flag.Name]; setting != "" {
					fmt.Fprintf(streams.ErrOut, "note: --%s has no effect: %s\n", flag.Name, setting)
				}
			})
			config, namespace := connect(factory)
			if *print.OutputFormat != "" {
				util.CheckErr(printService(command.Context(), config, print, streams.Out))
				return
			}
			names, err := findRegistry(command.Context(), config, namespace)
			util.CheckErr(err)
			fmt.Fprintf(streams.Out, "Docker registry \"docker-registry\" service exists\n%s\n", strings.TrimSpace(names.internal+"\n"+names.public))
		},
	}
	print.AddFlags(command)
	for name := range registrySettings {
		command.Flags().String(name, "", "")
		flag := command.Flags().Lookup(name)
		flag.Hidden, flag.NoOptDefVal = true, "true"
	}
	return command
}

// printService prints the registry's service without the fields that the server sets.
func printService(ctx context.Context, config *rest.Config, print *genericclioptions.PrintFlags, out io.Writer) error {
	printer, err := print.ToPrinter()
	if err != nil {
		return err
	}
	client, err := coreclient.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("connect: %w", err)
	}
	existing, err := client.Services(metav1.NamespaceDefault).Get(ctx, "docker-registry", metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("read registry service: %w", err)
	}
	return printer.PrintObj(&corev1.Service{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Service"},
		ObjectMeta: metav1.ObjectMeta{Name: existing.Name, Namespace: existing.Namespace, Labels: existing.Labels, Annotations: existing.Annotations},
		Spec:       existing.Spec,
	}, out)
}
