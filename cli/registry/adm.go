package registry

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/kubectl/pkg/cmd/util"
)

// registrySettings are the flags of OpenShift 3's `oc adm registry` and what says the same of a
// registry that is a part of the control plane.
var registrySettings = map[string]string{
	"mount-host":               "slipway.registry.directory of the MasterConfig",
	"volume":                   "slipway.registry.directory of the MasterConfig, with the volume mounted there",
	"ports":                    "slipway.registry.bindAddress of the MasterConfig",
	"supplemental-groups":      "the owner of slipway.registry.directory of the MasterConfig",
	"tls-certificate":          "imagePolicyConfig.externalRegistryHostname of the MasterConfig: the certificate is made and renewed by itself",
	"tls-key":                  "imagePolicyConfig.externalRegistryHostname of the MasterConfig: the certificate is made and renewed by itself",
	"replicas":                 "no setting: the registry runs once, in the control plane",
	"selector":                 "no setting: the registry runs in the control plane, in no pod",
	"daemonset":                "no setting: the registry runs in the control plane, in no pod",
	"service-account":          "no setting: the registry runs in the control plane, in no pod",
	"images":                   "no setting: the registry is in the program, of no image",
	"latest-images":            "no setting: the registry is in the program, of no image",
	"enforce-quota":            "no setting: quotas count always",
	"cluster-ip":               "no setting: the service has an address of its own",
	"labels":                   "no setting: the service has the label docker-registry=default",
	"fs-group":                 "the owner of slipway.registry.directory of the MasterConfig",
	"dry-run":                  "",
	"output":                   "",
	"create":                   "",
	"credentials":              "no setting: the registry has an identity of its own",
	"type":                     "no setting: there is one kind of registry",
	"local":                    "",
	"expose-metrics":           "no setting",
	"disable-service-creation": "no setting",
}

// NewAdm returns `oc adm registry`, which in OpenShift 3 deploys the registry. Here each cluster
// has one from its first start, so that the command says where it is, and where what its flags ask
// for is set.
func NewAdm(factory util.Factory, streams genericiooptions.IOStreams) *cobra.Command {
	command := &cobra.Command{
		Use: "registry", Short: "Show the cluster's image registry, which is there from the start",
		Long: `Show the cluster's image registry. It is a part of the control plane and there from the first start: nothing is deployed. What the flags of
OpenShift 3's command configure is set in the MasterConfig; a flag that is given is answered by the name of its setting.`,
		Args: cobra.NoArgs,
		Run: func(command *cobra.Command, _ []string) {
			var answers []error
			command.Flags().Visit(func(flag *pflag.Flag) {
				if setting := registrySettings[flag.Name]; setting != "" {
					answers = append(answers, fmt.Errorf("--%s does nothing here; in its place is %s", flag.Name, setting))
				}
			})
			util.CheckErr(errors.Join(answers...))
			config, namespace := connect(factory)
			names, err := findRegistry(command.Context(), config, namespace)
			util.CheckErr(err)
			fmt.Fprintf(streams.Out, "Docker registry \"docker-registry\" service exists\n%s\n", strings.TrimSpace(names.internal+"\n"+names.public))
		},
	}
	for name := range registrySettings {
		command.Flags().String(name, "", "")
		flag := command.Flags().Lookup(name)
		flag.Hidden, flag.NoOptDefVal = true, "true"
	}
	return command
}
