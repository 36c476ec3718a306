"""Published names of other libraries, over edgegrad: `pylibcugraphops` and `cudnn_gnn`."""
