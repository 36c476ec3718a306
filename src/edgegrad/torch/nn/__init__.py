"""Layers with the arguments and the `state_dict` names of PyG's: change the import."""

from edgegrad.torch.nn.gat_conv import GATConv
from edgegrad.torch.nn.gat_v2_conv import GATv2Conv
from edgegrad.torch.nn.gcn_conv import GCNConv
from edgegrad.torch.nn.rgcn_conv import RGCNConv
from edgegrad.torch.nn.sage_conv import SAGEConv
from edgegrad.torch.nn.transformer_conv import TransformerConv

__all__ = ["GATConv", "GATv2Conv", "GCNConv", "RGCNConv", "SAGEConv", "TransformerConv"]
