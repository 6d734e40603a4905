package config

// groupKeys returns the NodeConfig keys that a node group's ConfigMap can set. None of them
// specifies a key file, a program, a pod directory, a listening address of the node, or a check
// that protects the host. Feature gates are excluded because some of them enable such checks.
// kubeletArguments.resolv-conf is allowed because pods receive only the name servers and search
// domains in its file.
func groupKeys() []string {
	keys := []string{
		"apiVersion", "kind", "authConfig", "dnsNameservers", "dockerConfig", "enableUnidling", "imageConfig", "iptablesSyncPeriod",
		"masterClientConnectionOverrides", "networkConfig.mtu", "volumeConfig",
	}
	for _, name := range groupArguments() {
		keys = append(keys, "kubeletArguments."+name)
	}
	return keys
}

// groupArguments returns the kubelet arguments that a node group can set.
func groupArguments() []string {
	return []string{
		"authentication-token-webhook-cache-ttl", "authorization-webhook-cache-authorized-ttl", "authorization-webhook-cache-unauthorized-ttl",
		"container-log-max-files", "container-log-max-size", "cpu-cfs-quota", "cpu-cfs-quota-period", "cpu-manager-policy",
		"cpu-manager-policy-options", "cpu-manager-reconcile-period", "event-burst", "event-qps", "eviction-hard",
		"eviction-max-pod-grace-period", "eviction-minimum-reclaim", "eviction-pressure-transition-period", "eviction-soft",
		"eviction-soft-grace-period", "file-check-frequency", "image-gc-high-threshold", "image-gc-low-threshold",
		"kernel-memcg-notification", "kube-api-burst", "kube-api-qps", "kube-reserved", "max-pods", "maximum-dead-containers",
		"maximum-dead-containers-per-container", "memory-manager-policy", "minimum-container-ttl-duration", "minimum-image-ttl-duration",
		"node-labels", "node-status-max-images", "node-status-update-frequency", "pod-max-pids", "pods-per-core", "registry-burst",
		"registry-qps", "reserved-cpus", "reserved-memory", "resolv-conf", "runtime-request-timeout", "serialize-image-pulls",
		"streaming-connection-idle-timeout", "sync-frequency", "system-reserved", "topology-manager-policy", "topology-manager-scope",
		"v", "volume-stats-agg-period",
	}
}
