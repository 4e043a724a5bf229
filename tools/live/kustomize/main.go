// Command overlays builds every folder of overlays with kustomize's library in this process, as Flux does, and says how
// long that took in all.
package main

import (
	"fmt"
	"os"
	"path/filepath"
	"sort"
	"time"

	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
)

func main() {
	folders, err := filepath.Glob(filepath.Join(os.Args[1], "*"))
	if err != nil || len(folders) == 0 {
		fmt.Fprintln(os.Stderr, "no overlays", err)
		os.Exit(1)
	}
	sort.Strings(folders)
	start := time.Now()
	size := 0
	for _, folder := range folders {
		made, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), folder)
		if err != nil {
			fmt.Fprintln(os.Stderr, folder, err)
			os.Exit(1)
		}
		text, err := made.AsYaml()
		if err != nil {
			fmt.Fprintln(os.Stderr, folder, err)
			os.Exit(1)
		}
		size += len(text)
	}
	fmt.Println(time.Since(start).Seconds(), len(folders), size)
}
