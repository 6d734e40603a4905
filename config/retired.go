package config

// retiredMasterKeys returns MasterConfig keys that a release of OpenShift 3 wrote, but for which
// the current types have no field. The decoder accepts these keys so that the files of upgraded
// clusters can be loaded. Ignored reports them. NodeConfig has no retired keys.
func retiredMasterKeys() map[string]bool {
	return map[string]bool{
		// The web console became a deployment in 3.9.
		"assetConfig": true,
		// controllerConfig.election replaced this key.
		"controllerLeaseTTL": true,
		"pauseControllers":   true,
		// These features have always been enabled since 3.6.
		"disabledFeatures": true,
		// The kubelets' addresses are read from Node objects.
		"kubeletClientInfo.preferredAddressTypes": true,
		// Since 3.9, admissionConfig applies to all groups.
		"kubernetesMasterConfig.admissionConfig": true,
		"kubernetesMasterConfig.masterCount":     true,
		"kubernetesMasterConfig.staticNodeNames": true,
		// Since 3.9, OpenShift has not supported a Kubernetes control plane outside the master.
		"masterClients.externalKubernetesClientConnectionOverrides": true,
		"masterClients.externalKubernetesKubeConfig":                true,
		// The roles and namespaces that the first start creates have fixed names.
		"policyConfig.bootstrapPolicyFile":               true,
		"policyConfig.openshiftInfrastructureNamespace":  true,
		"policyConfig.openshiftSharedResourcesNamespace": true,
	}
}
