package agent

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/containernetworking/cni/libcni"
	"github.com/containernetworking/cni/pkg/invoke"
)

// checkPlugin returns an error that describes the missing parts of a CNI plugin and how to add
// them. Like containerd, checkPlugin sorts the configuration files by name and reads only the first
// file.
func checkPlugin(confDir string, binDirs []string) error {
	files, err := libcni.ConfFiles(confDir, []string{".conf", ".conflist", ".json"})
	if err != nil {
		return fmt.Errorf("list CNI configurations in %q: %w", confDir, err)
	}
	if len(files) == 0 {
		return fmt.Errorf("%q has no CNI configuration, so pods get no network; install a network plugin on this host, "+
			"or set networkConfig.networkPluginName to a plugin other than cni", confDir)
	}
	file := slices.Min(files)
	types, err := pluginTypes(file)
	if err != nil {
		return fmt.Errorf("read CNI configuration %q: %w; correct the file", file, err)
	}
	for _, name := range types {
		if _, err := invoke.FindInPath(name, binDirs); err != nil {
			return fmt.Errorf("%q names the CNI plugin %q, which is not in %s; install it there, or set "+
				"kubeletArguments.cni-bin-dir in node-config.yaml", file, name, strings.Join(binDirs, " or "))
		}
	}
	return nil
}

// pluginTypes returns the program names in a CNI configuration, which is either a list of plugins
// or a single plugin.
func pluginTypes(file string) (types []string, err error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	if filepath.Ext(file) != ".conflist" {
		plugin, err := libcni.NetworkPluginConfFromBytes(data)
		if err != nil {
			return nil, err
		}
		return []string{plugin.Network.Type}, nil
	}
	list, err := libcni.NetworkConfFromBytes(data)
	if err != nil {
		return nil, err
	}
	for _, plugin := range list.Plugins {
		types = append(types, plugin.Network.Type)
	}
	if len(types) == 0 {
		return nil, fmt.Errorf("it has no plugins")
	}
	return types, nil
}
