package project

import (
	"fmt"

	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/kubectl/pkg/cmd/util"
)

// contextInUse is the namespace and server of the selected context.
type contextInUse struct{ namespace, server string }

// useContext makes a context in the kubeconfig the current context. If the context does not exist,
// it returns nil.
func useContext(factory util.Factory, name string) (*contextInUse, error) {
	loader := factory.ToRawKubeConfigLoader()
	config, err := loader.RawConfig()
	if err != nil || config.Contexts[name] == nil {
		return nil, err
	}
	config.CurrentContext = name
	if err := clientcmd.ModifyConfig(loader.ConfigAccess(), config, false); err != nil {
		return nil, fmt.Errorf("switch to context %q: %w", name, err)
	}
	context := &contextInUse{namespace: config.Contexts[name].Namespace}
	if cluster := config.Clusters[config.Contexts[name].Cluster]; cluster != nil {
		context.server = cluster.Server
	}
	return context, nil
}
