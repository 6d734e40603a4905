package rsync

import (
	"context"
	"fmt"
	"os"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/rest"
	kubectlexec "k8s.io/kubectl/pkg/cmd/exec"
	"k8s.io/kubectl/pkg/cmd/util"
	"k8s.io/kubectl/pkg/cmd/util/podcmd"
	"k8s.io/kubectl/pkg/scheme"
)

// pod is where the container is that files are copied to or from.
type pod struct{ namespace, name, container string }

// connect finds the container, the usual one where none is named.
func (p pod) connect(ctx context.Context, factory util.Factory) (inContainer, error) {
	clients, err := factory.KubernetesClientSet()
	if err != nil {
		return nil, err
	}
	found, err := clients.CoreV1().Pods(p.namespace).Get(ctx, p.name, metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	if found.Status.Phase != corev1.PodRunning {
		return nil, fmt.Errorf("pod %q is %s; files are copied only while it runs", p.name, found.Status.Phase)
	}
	container, err := podcmd.FindOrDefaultContainerByName(found, p.container, true, nil)
	if err != nil {
		return nil, err
	}
	config, err := factory.ToRESTConfig()
	if err != nil {
		return nil, err
	}
	client, err := rest.RESTClientFor(config)
	if err != nil {
		return nil, fmt.Errorf("connect: %w", err)
	}
	return func(ctx context.Context, command []string, streams genericiooptions.IOStreams) error {
		request := client.Post().Namespace(p.namespace).Resource("pods").Name(p.name).SubResource("exec").VersionedParams(&corev1.PodExecOptions{
			Container: container.Name, Command: command, Stdin: streams.In != nil, Stdout: true, Stderr: true,
		}, scheme.ParameterCodec)
		return (&kubectlexec.DefaultRemoteExecutor{}).ExecuteWithContext(ctx, request.URL(), config, streams.In, streams.Out, streams.ErrOut, false, nil)
	}, nil
}

// remoteShell is the `oc rsh` that rsync calls, with what this command was told of the cluster.
func remoteShell(namespace, container string, command *cobra.Command) []string {
	words := os.Args[:1]
	if len(os.Args) > 1 && os.Args[1] == "oc" { // the client within the platform's program
		words = os.Args[:2]
	}
	words = append(words[:len(words):len(words)], "rsh", "-T", "--namespace="+namespace)
	for _, name := range []string{"kubeconfig", "context", "cluster", "user", "server", "as"} {
		if flag := command.Flag(name); flag != nil && flag.Changed {
			words = append(words, "--"+name+"="+flag.Value.String())
		}
	}
	if container != "" {
		words = append(words, "--container="+container)
	}
	return words
}
