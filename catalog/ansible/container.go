package ansible

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/remotecommand"
	"k8s.io/client-go/util/exec"
)

// The base image of runtime version 1 writes the credentials, a JSON object in base64, to
// credentialsFile. Its container then waits up to five minutes until releaseCommand has read and
// deleted the file.
const (
	credentialsFile = "/var/tmp/bind-creds"
	releaseCommand  = "broker-bind-creds"
)

// maxCredentials is the maximum size of credentialsFile, in bytes.
const maxCredentials = 128 << 10

// commandTimeout is the maximum duration of a command in a bundle's container. The bundle's image
// contains the command, which therefore might never end.
const commandTimeout = 10 * time.Second

// hasContainerCredentials reports whether the bundle keeps the credentials in its container.
func (op *operation) hasContainerCredentials() bool {
	return op.Bundle.Runtime == 1 && slices.Contains([]string{provisionAction, updateAction, bindAction}, op.Action)
}

// collect stores the credentials that a running container has written, and then makes the container
// exit. It does nothing if the container has not written them yet. The order ensures that a crash
// does not lose the credentials.
func (b *broker) collect(ctx context.Context, rec *record) error {
	op := rec.Operation
	ctx, cancel := context.WithTimeout(ctx, commandTimeout)
	defer cancel()
	if op.Credentials == nil {
		text, err := b.output(ctx, op.Name, "cat", credentialsFile)
		if isExit(err) {
			return nil
		}
		if err == nil {
			op.Credentials, err = decodeCredentials(text)
		}
		if err != nil {
			return fmt.Errorf("read credentials of operation %q: %w", op.Name, err)
		}
		if err := b.store(ctx, rec); err != nil {
			return err
		}
	}
	if _, err := b.output(ctx, op.Name, releaseCommand); err != nil && !isExit(err) {
		return fmt.Errorf("end pod of operation %q: %w", op.Name, err)
	}
	return nil
}

// isExit reports whether an error means that a command has exited with a code other than 0.
func isExit(err error) bool {
	var exit exec.ExitError
	return errors.As(err, &exit)
}

// decodeCredentials decodes the content of credentialsFile.
func decodeCredentials(text []byte) (credentials map[string]any, err error) {
	content, err := base64.StdEncoding.DecodeString(string(bytes.TrimSpace(text)))
	if err == nil {
		err = json.Unmarshal(content, &credentials)
	}
	if err != nil || credentials == nil {
		// The JSON error could contain a part of the credentials.
		return nil, fmt.Errorf("file %s is not a JSON object in base64", credentialsFile)
	}
	return credentials, nil
}

// output returns the standard output of a command in the container of an operation's pod.
func (b *broker) output(ctx context.Context, pod string, command ...string) ([]byte, error) {
	url := b.kube.CoreV1().RESTClient().Post().Namespace(pod).Resource("pods").Name(pod).SubResource("exec").VersionedParams(
		&corev1.PodExecOptions{Container: container, Command: command, Stdout: true}, scheme.ParameterCodec).URL()
	executor, err := remotecommand.NewSPDYExecutor(b.loopback, http.MethodPost, url)
	if err != nil {
		return nil, err
	}
	var result commandOutput
	if err := executor.StreamWithContext(ctx, remotecommand.StreamOptions{Stdout: &result}); err != nil {
		return nil, err
	}
	return result.content, nil
}

// commandOutput is the output of a command, at most maxCredentials bytes.
type commandOutput struct{ content []byte }

// Write implements io.Writer. It fails if the output is too large.
func (o *commandOutput) Write(p []byte) (int, error) {
	if len(o.content)+len(p) > maxCredentials {
		return 0, fmt.Errorf("the command writes more than %d bytes", maxCredentials)
	}
	o.content = append(o.content, p...)
	return len(p), nil
}
