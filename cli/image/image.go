// Package image implements the image commands of `oc adm`. `prune images` and `prune registry`
// remove unreferenced images and content. `top images` and `top imagestreams` list images with
// their sizes and references.
//
// Source: OpenShift Container Platform 3.11 Cluster Administration, chapters 14 and 19. Flags,
// headings and columns match OpenShift 3.11's client.
package image
