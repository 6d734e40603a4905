package objects

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/rest"
	kubectlexec "k8s.io/kubectl/pkg/cmd/exec"
	"k8s.io/kubectl/pkg/scheme"
)

// Exec runs a command in a container of a running pod and waits until the command exits. config is
// from a kubectl factory. If streams.In is nil, the command has no standard input.
func Exec(ctx context.Context, config *rest.Config, namespace, pod, container string, command []string, streams genericiooptions.IOStreams) error {
	client, err := rest.RESTClientFor(config)
	if err != nil {
		return fmt.Errorf("connect: %w", err)
	}
	request := client.Post().Namespace(namespace).Resource("pods").Name(pod).SubResource("exec").VersionedParams(&corev1.PodExecOptions{
		Container: container, Command: command, Stdin: streams.In != nil, Stdout: true, Stderr: true,
	}, scheme.ParameterCodec)
	return (&kubectlexec.DefaultRemoteExecutor{}).ExecuteWithContext(ctx, request.URL(), config, streams.In, streams.Out, streams.ErrOut, false, nil)
}
