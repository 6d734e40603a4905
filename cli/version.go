package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"io"

	"github.com/spf13/cobra"
	machineryversion "k8s.io/apimachinery/pkg/version"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/tools/clientcmd"
	componentversion "k8s.io/component-base/version"
	"k8s.io/kubectl/pkg/cmd/util"
	kubectl "k8s.io/kubectl/pkg/cmd/version"

	"github.com/slipway-platform/slipway/internal/version"
)

// newVersion returns the `oc version` command. The command prints its output in OpenShift 3's
// format or, if -o is set, in kubectl's format.
func newVersion(factory util.Factory, streams genericiooptions.IOStreams) *cobra.Command {
	command := kubectl.NewCmdVersion(factory, streams)
	structured := command.Run
	command.Run = func(command *cobra.Command, args []string) {
		output, _ := command.Flags().GetString("output")
		if output != "" {
			structured(command, args)
			return
		}
		clientOnly, _ := command.Flags().GetBool("client")
		writeClientVersion(streams.Out)
		if !clientOnly {
			util.CheckErr(writeServerVersion(command.Context(), factory, streams.Out))
		}
	}
	return command
}

func writeClientVersion(out io.Writer) {
	fmt.Fprintf(out, "oc %s\nkubernetes %s\nfeatures: Basic-Auth\n", version.OpenShift(), componentversion.Get().GitVersion)
}

// writeServerVersion prints the server's version. If there is no kubeconfig, it prints nothing.
func writeServerVersion(ctx context.Context, factory util.Factory, out io.Writer) error {
	client, err := factory.ToDiscoveryClient()
	if clientcmd.IsEmptyConfig(err) {
		return nil
	}
	if err != nil {
		return err
	}
	config, err := factory.ToRESTConfig()
	if err != nil {
		return err
	}
	kubernetes, err := client.ServerVersion()
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "\nServer %s\n", config.Host)
	openshift := machineryversion.Info{}
	response, err := client.RESTClient().Get().AbsPath("/version/openshift").DoRaw(ctx)
	if err == nil && json.Unmarshal(response, &openshift) == nil && openshift.GitVersion != "" {
		fmt.Fprintf(out, "openshift %s\n", openshift.GitVersion)
	}
	fmt.Fprintf(out, "kubernetes %s\n", kubernetes.GitVersion)
	return nil
}
