package deployment

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"syscall"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/slipway-platform/slipway/test/kit"
)

// onlyPod waits until exactly one running pod matches the selector. The pod does not have to be
// ready.
func onlyPod(c *kit.Cluster, selector string) (name string) {
	c.WaitFor("one running pod "+selector, func(ctx context.Context) error {
		pods, err := c.Client.CoreV1().Pods(c.Namespace).List(ctx, metav1.ListOptions{LabelSelector: selector})
		if err != nil {
			return err
		}
		if len(pods.Items) != 1 || pods.Items[0].Status.Phase != running {
			return fmt.Errorf("there are %d", len(pods.Items))
		}
		name = pods.Items[0].Name
		return nil
	})
	return name
}

// killDeployer kills a deployment's deployer process, which it finds by its environment variables.
func killDeployer(deployment, namespace string) error {
	environments, err := filepath.Glob("/proc/[0-9]*/environ")
	if err != nil {
		return err
	}
	for _, path := range environments {
		environment, err := os.ReadFile(path)
		if err != nil { // the process has exited
			continue
		}
		of := func(variable string) bool {
			return bytes.Contains(append([]byte{0}, environment...), []byte("\x00"+variable+"\x00"))
		}
		if !of("OPENSHIFT_DEPLOYMENT_NAME="+deployment) || !of("OPENSHIFT_DEPLOYMENT_NAMESPACE="+namespace) {
			continue
		}
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(path)))
		if err != nil {
			return err
		}
		return syscall.Kill(pid, syscall.SIGKILL)
	}
	return fmt.Errorf("no process has the environment of the deployer of %s", deployment)
}
