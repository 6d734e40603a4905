package config

// retiredMasterKeys are keys of a MasterConfig that some release of OpenShift 3 wrote and the types no
// longer have. They are accepted, so that the files of an upgraded cluster can be read, and reported
// by Ignored. A NodeConfig has none.
func retiredMasterKeys() map[string]bool {
	return map[string]bool{
		// The web console became a deployment in 3.9.
		"assetConfig": true,
		// The election of controllers moved to controllerConfig.election.
		"controllerLeaseTTL": true,
		"pauseControllers":   true,
		// Features were compiled in from 3.6 on.
		"disabledFeatures": true,
		// Addresses of kubelets come from the Node objects.
		"kubeletClientInfo.preferredAddressTypes": true,
		// One admission chain, admissionConfig, serves all groups since 3.9.
		"kubernetesMasterConfig.admissionConfig": true,
		"kubernetesMasterConfig.masterCount":     true,
		"kubernetesMasterConfig.staticNodeNames": true,
		// A Kubernetes outside of the master has not been supported since 3.9.
		"masterClients.externalKubernetesClientConnectionOverrides": true,
		"masterClients.externalKubernetesKubeConfig":                true,
		// Bootstrap roles and namespaces have fixed names.
		"policyConfig.bootstrapPolicyFile":               true,
		"policyConfig.openshiftInfrastructureNamespace":  true,
		"policyConfig.openshiftSharedResourcesNamespace": true,
	}
}
