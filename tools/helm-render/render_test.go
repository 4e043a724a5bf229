package main

import (
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

// BenchmarkRender renders each chart of the folder that CHARTS names, as one that was never seen. It is also what
// default.pgo, the profile that the program is built by, is recorded with:
//
//	CHARTS=DIR GOGC=400 go test -run '^$' -bench Render -cpuprofile default.pgo
//
// Record it on widely used charts, again when Helm's version changes.
func BenchmarkRender(b *testing.B) {
	charts, err := filepath.Glob(filepath.Join(os.Getenv("CHARTS"), "*", "Chart.yaml"))
	if err != nil || len(charts) == 0 {
		b.Skip("CHARTS names no folder of charts")
	}
	for _, chart := range charts {
		folder := filepath.Dir(chart)
		b.Run(filepath.Base(folder), func(b *testing.B) {
			request := requestFor(b, folder)
			for b.Loop() {
				if answer := render(newCharts(), request); answer.Error != nil {
					b.Skip(answer.Error.Message)
				}
			}
		})
	}
}

func requestFor(b *testing.B, folder string) *Request {
	request := &Request{
		Chart:        folder,
		Folder:       true,
		Release:      Release{Name: "demo", Namespace: "default"},
		Capabilities: Capabilities{KubeVersion: "v1.36.4"},
	}
	err := filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		name, err := filepath.Rel(folder, path)
		request.Files = append(request.Files, File{Name: filepath.ToSlash(name), Size: len(data), data: data})
		return err
	})
	if err != nil {
		b.Fatal(err)
	}
	return request
}
